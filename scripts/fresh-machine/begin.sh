#!/bin/sh
# The first steps of every run on a bare machine, called in its clone: the commands of README that come before `npm test`.
# Fails where the machine has another Node.js or engine than distributions.mjs says. Prints the facts that the table of CI and
# docs/tested.md show, one a line: `lane-<name> <value>`.
set -eu

expect() {
  case $2 in
  "$3"*) ;;
  *)
    echo "this machine must have $1 $3*, and has $2" >&2
    exit 1
    ;;
  esac
}

echo "lane-commit $(git rev-parse HEAD)"
echo "lane-kernel $(uname --kernel-release)"
echo "lane-node $(node --version)"
expect Node.js "$(node --version)" "${EXPECTED_NODE-}"
npm start </dev/null
echo 'doctor begins'
npx sally doctor
echo 'doctor ends'
# The value is the version, and after a colon its known vulnerabilities.
engine=$(npx sally doctor --json | node -e '
  const { checks } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
  console.log(checks.find(({ id }) => id === "engine-version").value.split(":")[0]);
')
echo "lane-engine $engine"
expect Engine "$engine" "${EXPECTED_ENGINE-}"
