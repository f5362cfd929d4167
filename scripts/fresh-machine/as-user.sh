#!/bin/sh
# Runs `npm test -- ARGUMENTS` as the ordinary user ada, in a clone of her own. Called as root in the clone of a bare machine,
# after begin.sh. The results end up where those of root would be.
#
#   as-user.sh --suite user
set -eu

# Installs the tools of the tests and makes the test image: both need root.
npm test -- test/integration/doctor.test.ts
rm .cache/test-results.json
useradd --create-home --groups docker ada
git clone --quiet . /home/ada/sallyport
chown -R ada: /home/ada/sallyport
code=0
su --login ada --whitelist-environment=NODE_EXTRA_CA_CERTS,CI,SALLYPORT_MUST_WORK,SALLYPORT_TEST_WORKERS \
  --command "cd sallyport && npm test -- $* </dev/null" || code=$?
cp /home/ada/sallyport/.cache/test-results.json .cache/
[ "$code" = 0 ]
if pgrep --list-full --euid ada; then
  echo "still running as the ordinary user"
  exit 1
fi
