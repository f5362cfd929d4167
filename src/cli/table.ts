/** Tables and figures for people. What comes from inside a sandbox is shown without anything that a terminal obeys. */

export function table(header: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  const all = [header, ...rows.map((row) => row.map(printable))];
  // Not as arguments of one call: rows are made inside a sandbox, and there may be more than a stack has room for.
  const widths = header.map((_, column) =>
    all.reduce((width, row) => Math.max(width, (row[column] ?? '').length), 0),
  );
  return all.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('   ')
      .trimEnd(),
  );
}

const known: Readonly<Record<string, string>> = { '\n': '\\n', '\t': '\\t', '\r': '\\r' };

/** SECURITY: names of files and words of commands are made inside; an escape sequence must not reach the terminal. */
export function printable(text: string): string {
  return text.replace(
    /\p{C}/gu,
    (character) => known[character] ?? `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

/** `3 minutes` since `from`, in the largest unit that has at least one. */
export function ago(from: string, now: number = Date.now()): string {
  const seconds = Math.max(0, Math.round((now - Date.parse(from)) / 1000));
  for (const [unit, size] of [
    ['day', 86_400],
    ['hour', 3600],
    ['minute', 60],
  ] as const) {
    const count = Math.floor(seconds / size);
    if (count > 0) return `${count} ${unit}${count === 1 ? '' : 's'} ago`;
  }
  return `${seconds} s ago`;
}

/** As a shell would take it, shortened to fit a column. */
export function commandLine(argv: readonly string[], width = 60): string {
  const line = argv
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
    .join(' ');
  return line.length > width ? `${line.slice(0, width - 1)}…` : line;
}

export function modeText(mode: number): string {
  const bits = 'rwxrwxrwx';
  return [...bits].map((letter, index) => ((mode >> (8 - index)) & 1 ? letter : '-')).join('');
}
