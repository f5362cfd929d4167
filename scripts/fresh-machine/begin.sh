#!/bin/sh
# The first steps of every run on a bare machine, called in its clone: the commands of README that come before `npm test`.
# Prints the facts that the table of CI and docs/tested.md show, one a line: `lane-<name> <value>`.
set -eu

echo "lane-commit $(git rev-parse HEAD)"
echo "lane-kernel $(uname --kernel-release)"
echo "lane-node $(node --version)"
npm start </dev/null
npx sally doctor
# The value is the version, and after a colon its known vulnerabilities.
engine=$(npx sally doctor --json | node -e '
  const { checks } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
  console.log(checks.find(({ id }) => id === "engine-version").value.split(":")[0]);
')
echo "lane-engine $engine"
