/** What a box of bubblewrap does not have and one of a container engine has, in words. Shown by `inspect`; nothing acts on it. */

export interface WeaknessFacts {
  readonly isRoot: boolean;
  readonly cgroups: boolean;
  readonly countsProcesses: boolean;
}

export function weaknesses({ isRoot, cgroups, countsProcesses }: WeaknessFacts): readonly string[] {
  return [
    "it shares this machine's programs and libraries, read-only, instead of an image of its own",
    ...(isRoot ? [] : ['outside it is your own user: what gets out of it is you', supplementary, hidden]),
    ...(cgroups
      ? []
      : [
          'memory and processor time are not limited: there is no control group for this user',
          'it cannot be paused',
        ]),
    ...(cgroups || countsProcesses ? [] : ['the number of its processes is not limited']),
  ];
}

const hidden = 'its disk limit does not count files in folders that it closes to your user';
const supplementary = 'it keeps your other groups: what they may read of the mounted system, it may read';
