/** The engine's filter syntax: a JSON object of lists, in one query parameter. */
export function labelFilter(labels: readonly string[]): string {
  return JSON.stringify({ label: labels });
}
