/** Reads the audit log, also while daemons write it and on a machine whose engine is gone, and tells whether all of it is there. */

import { closeSync, createReadStream, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { AuditLineView, AuditProblem, AuditType, AuditVerdict } from '../protocol/audit.ts';
import { auditRotation } from './audit.ts';
import { auditPath, genesis, hashLine, headPath, readHead, readLink } from './audit-chain.ts';
import { agedPath } from './rotating-file.ts';
import { errno, stateFailure } from './state-failure.ts';

interface RawLine {
  readonly text: string;
  readonly place: string;
}

/** Oldest first. What is no JSON is left out: `verifyAudit` tells of it. */
export async function* readAudit(stateDir: string): AsyncGenerator<AuditLineView> {
  for await (const { text } of rawLines(stateDir)) {
    const line = parsed(text);
    if (line !== undefined) yield line;
  }
}

export interface AuditQuery {
  readonly sinceMs?: number | undefined;
  readonly type?: AuditType | undefined;
  /** Its name. */
  readonly sandbox?: string | undefined;
}

/** Those that fit, oldest first. */
export async function* searchAudit(
  stateDir: string,
  { sinceMs, type, sandbox }: AuditQuery,
): AsyncGenerator<AuditLineView> {
  for await (const line of readAudit(stateDir)) {
    if (sinceMs !== undefined && !(Date.parse(line.at) >= sinceMs)) continue;
    if (type !== undefined && line.type !== type) continue;
    if (sandbox !== undefined && line.sandbox !== sandbox) continue;
    yield line;
  }
}

const mostProblems = 100;

/** With `noted` the log must also hold the line of that hash: what `verify` printed as its head some other day. */
export async function verifyAudit(stateDir: string, noted?: string): Promise<AuditVerdict> {
  const problems: AuditProblem[] = [];
  const tell = (text: string, place?: string): void => {
    if (problems.length < mostProblems) problems.push({ text, ...(place === undefined ? {} : { place }) });
  };
  const before = readHead(headPath(stateDir));
  let last: { readonly n: number; readonly hash: string } | undefined;
  let lines = 0;
  let seenHead = before === undefined || before.n === 0;
  let seenNoted = noted === undefined;
  for await (const { text, place } of rawLines(stateDir)) {
    lines++;
    const link = readLink(text);
    const line = parsed(text);
    const hash = hashLine(text);
    if (link === undefined || line === undefined) {
      tell('is no line of the chain', place);
      continue;
    }
    if (last === undefined) {
      // Read when the files are open: a rotation that drops lines says so before it does.
      const first = Math.max(before?.first ?? 1, readHead(headPath(stateDir))?.first ?? 1);
      if (link.n > first) tell(`lines ${first} to ${link.n - 1} are missing`, place);
      else if (link.n === 1 && link.prev !== genesis) tell('is not the first line that was written', place);
    } else if (link.n > last.n + 1) tell(`lines ${last.n + 1} to ${link.n - 1} are missing before it`, place);
    else if (link.n <= last.n) tell(`line ${link.n} comes after line ${last.n}`, place);
    else if (link.prev !== last.hash) tell(`line ${last.n} before it was changed`, place);
    if (line.type === 'audit') tell(`the writer found damage: ${line.reason}`, place);
    if (link.n === before?.n) {
      seenHead = true;
      if (hash !== before.hash) tell(`line ${link.n} is not the one that was written last`, place);
    }
    seenNoted ||= hash === noted;
    last = { n: link.n, hash };
  }
  const after = readHead(headPath(stateDir));
  if (!seenHead) tell(`lines ${(last?.n ?? 0) + 1} to ${before?.n ?? 0} are missing at the end`);
  if (after === undefined && lines > 0) tell('the head of the log (audit-head) is missing');
  if (!seenNoted) tell(`no line has the hash ${noted ?? ''}`);
  return { ok: problems.length === 0, lines, ...(last === undefined ? {} : { head: last }), problems };
}

function parsed(text: string): AuditLineView | undefined {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === 'object' && value !== null ? (value as AuditLineView) : undefined;
  } catch {
    return undefined;
  }
}

async function* rawLines(stateDir: string): AsyncGenerator<RawLine> {
  const files = openAll(auditPath(stateDir));
  try {
    for (const { fd, name, end } of files) {
      if (end < 0) continue;
      const content = createReadStream('', { fd, autoClose: false, start: 0, end });
      const isWhole = endsWithNewline(fd, end);
      let number = 0;
      let held: RawLine | undefined;
      for await (const text of createInterface({ input: content, crlfDelay: Number.POSITIVE_INFINITY })) {
        if (held !== undefined) yield held;
        held = { text, place: `${name}:${++number}` };
      }
      // The start of a line that a crash cut off was never there: the next writer removes it.
      if (held !== undefined && isWhole) yield held;
    }
  } finally {
    for (const { fd } of files) closeSync(fd);
  }
}

function endsWithNewline(fd: number, at: number): boolean {
  const byte = Buffer.alloc(1);
  return readSync(fd, byte, 0, 1, at) === 1 && byte[0] === 0x0a;
}

/** All of them as they are at one moment, oldest first: a rotation while they are opened is noticed. */
function openAll(path: string) {
  const ages = Array.from({ length: auditRotation.keep }, (_, age) => auditRotation.keep - 1 - age);
  const inodes = (): string => ages.map((age) => inode(agedPath(path, age))).join(' ');
  for (;;) {
    const before = inodes();
    const files = ages.flatMap((age) => {
      const fd = openIfThere(agedPath(path, age));
      return fd === undefined
        ? []
        : [{ fd, name: agedPath('audit.jsonl', age), end: fstatSync(fd).size - 1 }];
    });
    if (inodes() === before) return files;
    for (const { fd } of files) closeSync(fd);
  }
}

const inode = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.ino;

function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, 'r');
  } catch (cause) {
    if (errno(cause) === 'ENOENT') return undefined;
    throw stateFailure('reading the audit log', path, cause);
  }
}
