#!/usr/bin/env bash
# The steps of action.yml: `install`, then `run`.
#
# SECURITY: inputs come as environment variables and are only used as quoted arguments. Text that a pull request can choose
# must never become part of this script.
set -euo pipefail

die() {
  printf 'sallyport: %s\n' "$@" >&2
  exit 2
}

prefix=${RUNNER_TEMP:?}/sallyport

install_release() {
  local release=${INPUT_RELEASE%/} version=${INPUT_VERSION:-} target work name
  case $(uname -m) in
    x86_64) target=linux-x64 ;;
    aarch64 | arm64) target=linux-arm64 ;;
    *) die "there is no release for $(uname -m)" ;;
  esac
  work=$(mktemp -d "$RUNNER_TEMP/sallyport-release.XXXXXX")
  fetch "$release/SHA256SUMS" "$work/SHA256SUMS"
  # One release has one archive of each kind.
  name=$(sed -n "s/^[0-9a-f]\{64\}  \(sallyport-[0-9A-Za-z.-]*-$target\.tar\.gz\)\$/\1/p" "$work/SHA256SUMS")
  [ -n "$name" ] || die "$release has no archive for $target"
  if [ -n "$version" ] && [ "$name" != "sallyport-$version-$target.tar.gz" ]; then
    die "$release has $name, not version $version"
  fi
  fetch "$release/$name" "$work/$name"
  (cd "$work" && grep -F "  $name" SHA256SUMS | sha256sum --check --quiet --strict)
  tar -xzf "$work/$name" -C "$work"
  "$work/${name%.tar.gz}/install.sh" --prefix "$prefix"
  rm -rf -- "$work"
}

fetch() {
  case $1 in
    https://* | http://*) curl --fail --silent --show-error --location --max-time 300 --output "$2" -- "$1" ;;
    *) cp -- "$1" "$2" ;;
  esac
}

case ${1-} in
  install)
    case ${INPUT_VERSION:-} in *[!0-9A-Za-z.-]*) die "version is invalid: $INPUT_VERSION" ;; esac
    # SECURITY: no default. Sallyport is in no public registry, so its name there is anybody's.
    [ -n "${INPUT_RELEASE:-}" ] || die 'the input release is missing: set it to the URL or folder of a release'
    install_release
    echo "$prefix/bin" >>"${GITHUB_PATH:?}"
    "$prefix/bin/sally" setup --yes
    [ -n "${INPUT_IMAGE:-}" ] || "$prefix/bin/sally" image bootstrap --yes
    ;;
  run)
    args=(run "--timeout=${INPUT_TIMEOUT:-30m}")
    args+=("--workspace=${INPUT_WORKSPACE:-${GITHUB_WORKSPACE:?}}" "--workspace-mode=${INPUT_WORKSPACE_MODE:-copy}")
    [ -z "${INPUT_IMAGE:-}" ] || args+=("--image=$INPUT_IMAGE")
    while IFS= read -r rule; do
      rule=$(printf '%s' "$rule" | tr -d '[:space:]')
      [ -z "$rule" ] || args+=("--allow=$rule")
    done <<<"${INPUT_ALLOW:-}"
    code=0
    "$prefix/bin/sally" "${args[@]}" -- sh -c "${INPUT_COMMAND:?}" </dev/null || code=$?
    echo "exit-code=$code" >>"${GITHUB_OUTPUT:?}"
    exit "$code"
    ;;
  *) die 'usage: action.sh install | run' ;;
esac
