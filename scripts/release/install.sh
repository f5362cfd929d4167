#!/bin/sh
# Installs Sallyport from the archive that this file is in. Run it again to upgrade or repair.
#
#   ./install.sh [--prefix FOLDER]    default: /usr/local for root, else ~/.local
set -eu
umask 022

die() {
  printf 'install.sh: %s\n' "$@" >&2
  exit 1
}

if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix=${HOME:?}/.local; fi
while [ $# -gt 0 ]; do
  case $1 in
    --prefix)
      [ -n "${2-}" ] || die '--prefix needs a folder'
      prefix=$2
      shift 2
      ;;
    --prefix=?*)
      prefix=${1#--prefix=}
      shift
      ;;
    -h | --help)
      echo 'usage: ./install.sh [--prefix FOLDER]    (default: /usr/local for root, else ~/.local)'
      exit 0
      ;;
    *) die "unknown option: $1" ;;
  esac
done

here=$(cd -- "$(dirname -- "$0")" && pwd -P)
source=$here/lib/sallyport
[ -f "$source/archive" ] || die "$source is missing: unpack the whole archive first"
version=$(cut -d ' ' -f 1 "$source/archive")
"$source/node/bin/node" --version >/dev/null 2>&1 ||
  die "the Node.js of this archive ($(cut -d ' ' -f 2 "$source/archive")) does not run on this machine ($(uname -m))" \
    'take the archive for this architecture; it needs glibc 2.28 or newer'

mkdir -p -- "$prefix/bin" "$prefix/lib"
prefix=$(cd -- "$prefix" && pwd -P)
target=$prefix/lib/sallyport
entry=../lib/sallyport/package/dist/cli/sally.cjs
[ "$target" != "$source" ] || die "$prefix is the unpacked archive itself: choose another prefix"

# Never replace files that an archive did not install.
if [ -e "$target" ] && [ ! -f "$target/archive" ]; then
  die "$target exists and is not an installation of Sallyport by archive" 'remove it, or choose another --prefix'
fi
for name in sally sallyport; do
  link=$prefix/bin/$name
  if { [ -e "$link" ] || [ -L "$link" ]; } && [ "$(readlink -- "$link")" != "$entry" ]; then
    die "$link exists and is not of this installation" \
      'remove it (`npm rm -g sallyport` if npm installed it), or choose another --prefix'
  fi
done

# The old tree stays until the new one is complete.
new=$prefix/lib/.sallyport-new.$$
old=$prefix/lib/.sallyport-old.$$
trap 'rm -rf -- "$new"' EXIT
cp -R -- "$source" "$new"
before=
if [ -e "$target" ]; then
  before=$(cut -d ' ' -f 1 "$target/archive")
  mv -- "$target" "$old"
fi
mv -- "$new" "$target"
rm -rf -- "$old"
for name in sally sallyport; do ln -sfn -- "$entry" "$prefix/bin/$name"; done

case $before in
  '') echo "installed Sallyport $version in $target" ;;
  "$version") echo "installed Sallyport $version in $target again" ;;
  *) echo "replaced Sallyport $before with $version in $target" ;;
esac
echo "commands: $prefix/bin/sally, $prefix/bin/sallyport"
case :$PATH: in
  *":$prefix/bin:"*) ;;
  *) echo "add $prefix/bin to PATH to call them by name" ;;
esac
echo 'next: sally setup; sally uninstall removes it all again'
