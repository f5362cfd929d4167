/** The machines that Sallyport promises to work on: a Debian release each, with the Node.js line that goes with it. */

export const distributions = {
  'debian-12': { suite: 'bookworm', node: '20', npm: '10' },
  'debian-13': { suite: 'trixie', node: '22', npm: '10' },
  'debian-sid': { suite: 'sid', node: '24', npm: '11' },
};

/** Everything a newcomer is assumed to have: a C compiler, git, `ps` and the usual certificates. Nothing else. */
export const bareMachinePackages = ['ca-certificates', 'gcc', 'git', 'libc6-dev', 'procps'];

export function distributionNamed(name) {
  const found = distributions[name];
  if (found !== undefined) return { name, ...found };
  console.error(`sally: unknown machine ${JSON.stringify(name ?? '')}`);
  console.error(`sally: name one of ${Object.keys(distributions).join(', ')}`);
  process.exit(2);
}
