/** Sizes as people write them ("512m", "4g", "1.5 GiB") to bytes and back. Units are binary; a bare number is bytes. */

const unitBytes: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  k: 2 ** 10,
  m: 2 ** 20,
  g: 2 ** 30,
  t: 2 ** 40,
};

/** Returns undefined for anything that is not exactly one size: a limit must never be guessed. */
export function parseSize(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*(?:([kmgt])(?:i?b)?|b)?$/i.exec(text.trim());
  if (!match) return undefined;
  const unit = unitBytes[(match[2] ?? '').toLowerCase()];
  if (unit === undefined) return undefined;
  const bytes = Math.round(Number(match[1]) * unit);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

export function formatSize(bytes: number): string {
  for (const [unit, name] of [
    [2 ** 40, 'TiB'],
    [2 ** 30, 'GiB'],
    [2 ** 20, 'MiB'],
    [2 ** 10, 'KiB'],
  ] as const) {
    if (bytes >= unit) return `${(bytes / unit).toFixed(bytes >= 10 * unit ? 0 : 1)} ${name}`;
  }
  return `${bytes} B`;
}
