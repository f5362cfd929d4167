/** What a person may change: which commands never run on the host, which paths nothing touches there, what is refused. */

import { type CommandPattern, parseCommandPattern } from './command-pattern.ts';

export interface RiskLists {
  /** Commands that go to the sandbox, and ask. In the syntax of `command-pattern.ts`. */
  readonly forbidden: readonly string[];
  readonly restrictedPaths: readonly string[];
  /** Commands that are refused. Empty unless the user says so. */
  readonly blocked: readonly string[];
  /** More programs that only read. */
  readonly safeTools: readonly string[];
}

export const defaultLists: RiskLists = {
  forbidden: ['rm -rf /', 'mkfs', 'mkfs.*', 'dd of=/dev/*', 'format C:', 'del /f /s /q C:\\'],
  restrictedPaths: ['/root', '/etc/shadow', '/etc/passwd', 'C:\\Windows', 'System32', 'SysWOW64'],
  blocked: [],
  safeTools: [],
};

/** The lists as they are compared with commands: read once, used for many. */
export interface ReadLists {
  readonly forbidden: readonly CommandPattern[];
  readonly blocked: readonly CommandPattern[];
  readonly restrictedPaths: readonly string[];
  readonly safeTools: ReadonlySet<string>;
}

export function readLists(lists: RiskLists): ReadLists {
  const patterns = (entries: readonly string[]): readonly CommandPattern[] =>
    entries.map(parseCommandPattern).filter((pattern) => pattern !== undefined);
  return {
    forbidden: patterns(lists.forbidden),
    blocked: patterns(lists.blocked),
    restrictedPaths: lists.restrictedPaths,
    safeTools: new Set(lists.safeTools),
  };
}
