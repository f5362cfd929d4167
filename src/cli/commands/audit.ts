/** `sally audit`: what ran, where, why and how it ended; `sally audit verify`: whether all of it is still there. */

import { type AuditLineView, type AuditType, auditTypes, sinceOf } from '../../protocol/audit.ts';
import { SallyportError } from '../../protocol/errors.ts';
import { readClientEnvironment } from '../../sdk/config.ts';
import { searchAudit, verifyAudit } from '../../store/audit-reader.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { print, printJson } from '../output.ts';
import { commandLine, printable } from '../table.ts';

export interface AuditOptions {
  readonly since?: string;
  readonly box?: string;
  readonly type?: string;
  readonly json?: true;
}

export async function auditCommand(options: AuditOptions, { signal }: CliContext): Promise<number> {
  const since = options.since === undefined ? undefined : timeOf(options.since);
  const type = options.type === undefined ? undefined : typeOf(options.type);
  const query = { sinceMs: since, type, sandbox: options.box };
  for await (const line of searchAudit(readClientEnvironment().stateDir, query)) {
    if (signal.aborted) return exitCode.interrupted;
    print(options.json === true ? JSON.stringify(line) : lineOf(line));
  }
  return exitCode.ok;
}

export async function auditVerifyCommand(options: {
  readonly head?: string;
  readonly json?: true;
}): Promise<number> {
  const { head: noted } = options;
  if (noted !== undefined && !/^[0-9a-f]{64}$/.test(noted)) {
    throw new SallyportError('usage', '--head is no hash that `sally audit verify` printed');
  }
  const verdict = await verifyAudit(readClientEnvironment().stateDir, noted);
  if (options.json === true) printJson(verdict);
  else {
    for (const { place, text } of verdict.problems) {
      print(printable(place === undefined ? text : `${place}: ${text}`));
    }
    const head = verdict.head === undefined ? '' : `; the last, ${verdict.head.n}, is ${verdict.head.hash}`;
    print(`${verdict.ok ? 'whole' : 'DAMAGED'}: ${verdict.lines} lines${head}`);
  }
  return verdict.ok ? exitCode.ok : exitCode.failed;
}

function timeOf(text: string): number {
  const at = sinceOf(text, Date.now());
  if (at !== undefined) return at;
  throw new SallyportError('usage', `--since ${JSON.stringify(text)} is neither a duration nor a time`, {
    advice: 'Write it like 2h, 30m, 2026-11-16 or 2026-11-16T09:00:00Z.',
  });
}

function typeOf(text: string): AuditType {
  const found = auditTypes.find((type) => type === text);
  if (found !== undefined) return found;
  throw new SallyportError('usage', `--type ${JSON.stringify(text)} is not one of ${auditTypes.join(', ')}`);
}

function lineOf({ at, type, sandbox, argv, command, where, outcome, reason }: AuditLineView): string {
  const what = command ?? (argv === undefined ? '' : commandLine(argv, 200));
  const place = sandbox ?? where ?? '-';
  const why = reason === '' ? '' : `  (${reason})`;
  return printable(`${at}  ${type.padEnd(8)}  ${place}  ${what}  → ${outcome}${why}`);
}
