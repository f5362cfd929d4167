/**
 * The machines that Sallyport promises to work on: a Debian release each, with the Node.js line that goes with it. `engine` is
 * how the version of its engine begins; sid has whichever is newest.
 */

/**
 * The kernel as a program: Debian's user-mode-linux. It comes from sid, because 6.1 and 6.12 cannot set the registers of their
 * first process on a CPU with AMX. It runs in a folder with these packages and what they depend on.
 */
const userModeLinux = {
  suite: 'sid',
  packages: ['base-files', 'coreutils', 'dash', 'mount', 'user-mode-linux'],
  /** What a system needs for a kernel with modules and a network card. */
  guestPackages: ['iproute2', 'kmod'],
};

export const distributions = {
  'debian-12': { suite: 'bookworm', node: '20', npm: '10', engine: '20.10.' },
  'debian-13': { suite: 'trixie', node: '22', npm: '10', engine: '26.1.' },
  'debian-sid': { suite: 'sid', node: '24', npm: '11' },
  /** Without a compiler, and the first one without Node.js: for what users install. */
  'debian-12-bare': { suite: 'bookworm', packages: ['ca-certificates'] },
  'debian-12-node': { suite: 'bookworm', packages: ['ca-certificates'], node: '20', npm: '10' },
  /** The user space of Debian 13 on a kernel of its own, whose control groups are those of version 2. */
  'debian-13-cgroup2': { suite: 'trixie', node: '22', npm: '10', engine: '26.1.', kernel: userModeLinux },
};

/** Everything a newcomer with a checkout is assumed to have: a C compiler, git, `ps` and the usual certificates. Nothing else. */
export const bareMachinePackages = ['ca-certificates', 'gcc', 'git', 'libc6-dev', 'procps'];

export function distributionNamed(name) {
  const found = distributions[name];
  if (found !== undefined) return { name, ...found };
  console.error(`sally: unknown machine ${JSON.stringify(name ?? '')}`);
  console.error(`sally: name one of ${Object.keys(distributions).join(', ')}`);
  process.exit(2);
}
