#!/bin/sh
# Brings an image to the state that packages.txt and smoke.txt promise, then marks it as provisioned.
#
# Runs as root while the image is built, the same whether the image came from a registry or from mmdebstrap. In the second
# case no package is missing, so it needs no network. The marker is written last: a failed step leaves no marked image.
# With `unmarked` neither the smoke test nor the marker is done here: both belong to who tries the image in a sandbox.
set -eu

version=$1
marking=${2:-marked}
here=/opt/sallyport
marker="$here/.provisioned.v$version"

case $version in
'' | *[!0-9]*)
  echo "provision: PROVISION_VERSION must be a number, not '$version'" >&2
  exit 1
  ;;
esac
rm -f "$here"/.provisioned.v*

# What mmdebstrap wrote for itself is the same list, under another name.
rm -f /etc/dpkg/dpkg.cfg.d/99mmdebstrap
mkdir -p /etc/dpkg/dpkg.cfg.d
mv "$here/dpkg-excludes" /etc/dpkg/dpkg.cfg.d/sallyport

missing=
while read -r package; do
  case $package in '' | '#'*) continue ;; esac
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing="$missing $package"
done <"$here/packages.txt"

# FRESHNESS has another value when an image is provisioned again: it may have lost files of packages that dpkg still lists.
damaged=
if [ "${FRESHNESS:-any}" != any ]; then
  unread='^/(var|usr/share/(doc|groff|i18n|info|linda|lintian|locale|man))/'
  for file in $(dpkg --verify | grep -v ' c /' | awk '{ print $NF }' | grep -Ev "$unread"); do
    damaged="$damaged $(dpkg-query --search "$file" | sed 's/: .*//; s/,//g')"
  done
  damaged=$(printf '%s\n' $damaged | sort -u | tr '\n' ' ')
  [ -z "${damaged# }" ] || echo "provision: files are missing or changed of $damaged"
fi

if [ -n "$missing${damaged# }" ]; then
  echo "provision: installing$missing $damaged"
  export DEBIAN_FRONTEND=noninteractive
  apt-get -q update
  # shellcheck disable=SC2086 # a list of names
  apt-get -q -o Dpkg::Use-Pty=0 install -y --reinstall --no-install-recommends $missing $damaged
  apt-get clean
  rm -rf /var/lib/apt/lists/*
fi
rm -rf /var/cache/apt/*.bin /var/cache/debconf/*-old /var/log/apt /var/log/dpkg.log /var/log/alternatives.log

# Written by hand because the smallest root file system has no useradd.
owner=$(awk -F: '$3 == 1000 { print $1 }' /etc/passwd)
case $owner in
sally) ;;
'')
  echo 'sally:x:1000:1000:sally:/home/sally:/bin/bash' >>/etc/passwd
  echo 'sally:x:1000:' >>/etc/group
  echo 'sally:*:19000:0:99999:7:::' >>/etc/shadow
  ;;
*)
  echo "provision: uid 1000 already belongs to $owner" >&2
  exit 1
  ;;
esac
mkdir -p /home/sally /workspace
cp -R /etc/skel/. /home/sally/
chown -R 1000:1000 /home/sally /workspace

if [ "$marking" = unmarked ]; then
  echo "provision: installed, to be tried in a sandbox"
  exit 0
fi

while read -r check; do
  case $check in '' | '#'*) continue ;; esac
  if ! sh -c "$check" >/dev/null 2>&1 </dev/null; then
    echo "provision: the smoke test failed: $check" >&2
    exit 1
  fi
done <"$here/smoke.txt"

: >"$marker"
echo "provision: done ($marker)"
