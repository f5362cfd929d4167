/** The end of a dockerd log, as people want to read it. */

/** logrus writes `time="…" level=… msg="…"`; the message is what matters, and plain lines stay as they are. */
function messageOf(line: string): string {
  const quoted = /\bmsg="((?:[^"\\]|\\.)*)"/.exec(line)?.[1];
  if (quoted === undefined) return line.trim();
  const error = /\berror="((?:[^"\\]|\\.)*)"/.exec(line)?.[1];
  return [quoted, error]
    .filter((part) => part !== undefined)
    .join(': ')
    .replace(/\\(.)/g, '$1');
}

export function lastLogLines(log: string, count: number): readonly string[] {
  return log
    .split('\n')
    .filter((line) => line.trim() !== '')
    .slice(-count)
    .map((line) => messageOf(line).slice(0, 300));
}
