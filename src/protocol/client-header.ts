/**
 * What a client says about itself with every request, so that the daemon refuses what does not fit before it does
 * anything and no question has to be asked first: `sallyport-client: <version> <hash of its engine variables>`.
 */

export const clientHeader = 'sallyport-client';
/** With an exec that is waited for: its id, sent when it is written down and before it is over. */
export const execIdHeader = 'sallyport-exec-id';
export const treeContentType = 'application/x-sallyport-tree';
export const linesContentType = 'application/x-ndjson';

export interface ClientWords {
  readonly version: string;
  /** Absent: the client takes whatever engine the daemon has. */
  readonly engineEnvironment?: string;
}

export function writeClientHeader({ version, engineEnvironment }: ClientWords): string {
  return engineEnvironment === undefined ? version : `${version} ${engineEnvironment}`;
}

export function readClientHeader(value: string): ClientWords | undefined {
  const match = /^(\d+\.\d+\.\d+[\w.+-]{0,64})(?: ([0-9a-f]{16}))?$/.exec(value);
  if (match === null) return undefined;
  const [, version = '', engineEnvironment] = match;
  return { version, ...(engineEnvironment === undefined ? {} : { engineEnvironment }) };
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
