/**
 * The machines of `npm run test:full`, in the order in which they run. `distribution` is a name of
 * fresh-machine/distributions.mjs, and `script` runs in a clone on that machine. Each has a row in docs/tested.md,
 * where `runs` says what the row covers.
 */

const begin = 'sh scripts/fresh-machine/begin.sh';
const everything = { runs: 'all tests, with the big sizes', script: `${begin}; npm test -- --full` };
const asUser = {
  runs: 'suite `user` with the big sizes, as an ordinary user of Debian 12',
  script: `${begin}; sh scripts/fresh-machine/as-user.sh --full --suite user`,
};
const cgroup2 = {
  runs: 'suite `cgroup2`, on cgroup v2',
  // The engine must report the version that the machine is for.
  script: `${begin}; npx sally doctor | grep 'cgroups *v2'; npm test -- --suite cgroup2`,
};

export const machines = [
  { name: 'debian-12', distribution: 'debian-12', ...everything },
  { name: 'debian-13', distribution: 'debian-13', ...everything },
  { name: 'debian-sid', distribution: 'debian-sid', ...everything },
  { name: 'debian-13-cgroup2', distribution: 'debian-13-cgroup2', ...cgroup2 },
  { name: 'user', distribution: 'debian-12', ...asUser },
];
