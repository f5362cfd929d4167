/** The engine's filter syntax: a JSON object of lists, in one query parameter. */
export function labelFilter(labels: readonly string[]): string {
  return JSON.stringify({ label: labels });
}

/** `wanted` is `key` or `key=value`. For where an engine does not filter by several labels as it should. */
export function carriesLabel(labels: Readonly<Record<string, string>>, wanted: string): boolean {
  const [, name = wanted, value] = /^([^=]*)=(.*)$/s.exec(wanted) ?? [];
  return value === undefined ? Object.hasOwn(labels, name) : labels[name] === value;
}
