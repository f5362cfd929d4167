/**
 * What a client says about itself with every request, so that the daemon refuses what does not fit before it does
 * anything and no question has to be asked first: `sallyport-client: <version> <key of the engine>`.
 */

export const clientHeader = 'sallyport-client';
/** With an exec that is waited for: its id, sent when it is written down and before it is over. */
export const execIdHeader = 'sallyport-exec-id';
export const treeContentType = 'application/x-sallyport-tree';
export const linesContentType = 'application/x-ndjson';

export interface ClientWords {
  readonly version: string;
  /** `engineChoice` of `engine-environment.ts`. Absent: the client accepts the daemon's engine, whichever it is. */
  readonly engineKey?: string;
}

export function writeClientHeader({ version, engineKey }: ClientWords): string {
  return engineKey === undefined ? version : `${version} ${engineKey}`;
}

export function readClientHeader(value: string): ClientWords | undefined {
  const match = /^(\d+\.\d+\.\d+[\w.+-]{0,64})(?: ([a-z]{1,32}(?:-[0-9a-f]{8})?))?$/.exec(value);
  if (match === null) return undefined;
  const [, version = '', engineKey] = match;
  return { version, ...(engineKey === undefined ? {} : { engineKey }) };
}

/** Negative when `a` is older. What follows the three numbers does not count. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [numbers(a), numbers(b)];
  for (const [index, number] of left.entries()) {
    const difference = number - (right[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

const numbers = (version: string): readonly number[] =>
  version
    .split(/[-+]/, 1)[0]
    ?.split('.')
    .map((part) => Number.parseInt(part, 10)) ?? [];
