/** The time limit of a command, as the API has it. */

/** With a terminal somebody is there who ends it. */
export function timeoutOf({ timeout, tty }: { readonly timeout?: number; readonly tty?: true }): {
  readonly timeout_ms?: number;
} {
  if (timeout !== undefined) return { timeout_ms: timeout };
  return tty === true ? { timeout_ms: 0 } : {};
}
