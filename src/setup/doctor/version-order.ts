/** Versions of container software: their order, and whether a distribution built them. */

export interface Version {
  readonly numbers: readonly [number, number, number];
  /** `[rank, number]` of `-rc.3`; a release without one is later than all of its own. */
  readonly preRelease?: readonly [number, number];
}

const preReleaseRank: Readonly<Record<string, number>> = { dev: 0, alpha: 1, beta: 2, rc: 3 };

export function parseVersion(text: string): Version | undefined {
  const match = /^v?(\d+)\.(\d+)(?:\.(\d+))?(?:[-~](dev|alpha|beta|rc)[.-]?(\d+)?)?/i.exec(text.trim());
  if (match === null) return undefined;
  const [, major, minor, patch = '0', stage, step = '0'] = match;
  const numbers = [Number(major), Number(minor), Number(patch)] as const;
  if (stage === undefined) return { numbers };
  return { numbers, preRelease: [preReleaseRank[stage.toLowerCase()] ?? 0, Number(step)] };
}

export function compareVersions(a: Version, b: Version): number {
  for (const index of [0, 1, 2] as const) {
    const difference = a.numbers[index] - b.numbers[index];
    if (difference !== 0) return difference;
  }
  if (a.preRelease === undefined || b.preRelease === undefined) {
    return Number(a.preRelease === undefined) - Number(b.preRelease === undefined);
  }
  return a.preRelease[0] - b.preRelease[0] || a.preRelease[1] - b.preRelease[1];
}

export function sameBranch(a: Version, b: Version): boolean {
  return a.numbers[0] === b.numbers[0] && a.numbers[1] === b.numbers[1];
}

/**
 * Debian, Ubuntu, Fedora and others fix flaws without changing the upstream version; their suffix or package revision
 * (`1.1.5+ds1-1+deb12u1`, `24.0.7-0ubuntu4`, `1.1.12-3.fc39`) gives them away. What `git describe` adds
 * (`v1.1.12-0-g51d5e94`) is no such thing.
 */
export function isDistributionBuild(...texts: readonly string[]): boolean {
  return texts.some((text) =>
    /^v?\d+\.\d+(?:\.\d+)?(?:[-~](?:dev|alpha|beta|rc)[.-]?\d*)?(?:[+~]\w|-(?!\d+-g[0-9a-f]{6})\d)/i.test(
      text,
    ),
  );
}
