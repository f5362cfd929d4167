/**
 * A YAML file to a value, or to an error with file, line and column. The file may be hostile: size, aliases and nesting are
 * bounded, and nothing but plain data comes out of it.
 */

import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { type Document, isAlias, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument } from 'yaml';
import type { z } from 'zod';
import { SallyportError } from '../protocol/errors.ts';
import { examine, problemLine } from '../protocol/parse-spec.ts';
import type { Problem } from '../protocol/problems.ts';

const mostBytes = 2 ** 20;
const mostAliases = 100;
const mostShown = 10;

/** Undefined: there is no such file. */
export async function readConfigFile(file: string): Promise<string | undefined> {
  let handle: Awaited<ReturnType<typeof open>>;
  try {
    // Not blocking, or a pipe of this name would hold the command for ever.
    handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw unusable(file, `it cannot be opened (${String(code)})`, error);
  }
  try {
    if (!(await handle.stat()).isFile()) throw unusable(file, 'it is no regular file');
    const buffer = Buffer.alloc(mostBytes + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await handle.read(buffer, length, buffer.length - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
      if (length > mostBytes) throw unusable(file, 'it is larger than 1 MiB');
    }
    return decode(file, buffer.subarray(0, length));
  } finally {
    await handle.close();
  }
}

function decode(file: string, bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw unusable(file, 'it is no UTF-8 text', error);
  }
}

const unusable = (file: string, why: string, cause?: unknown): SallyportError =>
  new SallyportError('config_invalid', `${file}: ${why}`, { details: { file }, cause });

/** The data as it is written, once `schema` has accepted it. An empty file is an empty map. */
export function parseConfigText(
  file: string,
  text: string,
  schema: z.ZodType,
): Readonly<Record<string, unknown>> {
  const lines = new LineCounter();
  const document = parseYaml(file, text, lines);
  const value = plainValue(file, document) ?? {};
  const { problems } = examine(schema, value);
  if (problems.length > 0) {
    throw invalid(
      file,
      problems.map((problem) => ({ ...placeOf(document, lines, problem), text: problemLine(problem) })),
    );
  }
  return value as Readonly<Record<string, unknown>>;
}

function parseYaml(file: string, text: string, lines: LineCounter): Document {
  let document: Document;
  try {
    document = parseDocument(text, {
      lineCounter: lines,
      prettyErrors: false,
      strict: true,
      uniqueKeys: true,
    });
  } catch (error) {
    throw unusable(file, 'it is nested too deeply to be read', error);
  }
  // A warning is a tag that nobody resolves: the value would not be what was written.
  const found = [...document.errors, ...document.warnings];
  if (found.length > 0) {
    throw invalid(
      file,
      found.map((error) => ({
        ...position(lines, error.pos[0]),
        text: `is no valid YAML: ${error.message}`,
      })),
    );
  }
  return document;
}

function plainValue(file: string, document: Document): unknown {
  try {
    return document.toJS({ maxAliasCount: mostAliases });
  } catch (error) {
    throw unusable(file, `it uses more than ${mostAliases} aliases, or one that leads nowhere`, error);
  }
}

interface Finding {
  readonly line: number;
  readonly column: number;
  readonly text: string;
}

function invalid(file: string, findings: readonly Finding[]): SallyportError {
  const shown = findings
    .slice(0, mostShown)
    .map(({ line, column, text }) => `${file}:${line}:${column}: ${text}`);
  if (findings.length > mostShown) shown.push(`and ${findings.length - mostShown} more`);
  const { line = 1, column = 1 } = findings[0] ?? {};
  return new SallyportError('config_invalid', shown.join('\n'), {
    details: { file, line, column, problems: shown },
    advice: 'Correct these places; docs/spec.md describes every field.',
  });
}

function position(lines: LineCounter, offset: number): { readonly line: number; readonly column: number } {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(line, 1), column: Math.max(col, 1) };
}

/** Where the problem is written; for a field that is missing, where it should be. */
function placeOf(document: Document, lines: LineCounter, problem: Problem): { line: number; column: number } {
  let step: Step = { node: document.contents, place: startOf(document.contents) };
  for (const [depth, part] of problem.path.entries()) {
    const wantsKey = problem.aboutKey && depth === problem.path.length - 1;
    const next = stepInto(document, step.node, part, wantsKey);
    if (next === undefined) break;
    step = { node: next.node, place: next.place ?? step.place };
  }
  return position(lines, step.place ?? 0);
}

interface Step {
  readonly node: unknown;
  readonly place: number | undefined;
}

function stepInto(
  document: Document,
  from: unknown,
  part: string | number,
  wantsKey: boolean,
): Step | undefined {
  const node = isAlias(from) ? from.resolve(document) : from;
  if (isSeq(node)) {
    const item = node.items[Number(part)];
    return { node: item, place: startOf(item) };
  }
  if (!isMap(node)) return undefined;
  const pair = node.items.find(({ key }) => String(isScalar(key) ? key.value : key) === String(part));
  if (pair === undefined) return undefined;
  const key = startOf(pair.key);
  return { node: pair.value, place: wantsKey ? key : (startOf(pair.value) ?? key) };
}

const startOf = (node: unknown): number | undefined => (isNode(node) ? node.range?.[0] : undefined);
