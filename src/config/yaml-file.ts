/**
 * A YAML file to a value, or to an error with file, line and column. The file may be hostile: size, aliases and nesting are
 * bounded, and nothing but plain data comes out of it.
 */

import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
} from 'yaml';
import type { z } from 'zod';
import { SallyportError } from '../protocol/errors.ts';
import { examine, problemLine } from '../protocol/parse-spec.ts';
import type { Problem } from '../protocol/problems.ts';

const mostBytes = 256 * 1024;
const mostLines = 20_000;
/** The parser calls itself for each level, and at the end of the stack V8 aborts the process where nothing can be caught. */
const mostOpenBrackets = 256;
const mostIndicatorsInLine = 500;
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
      if (length > mostBytes) throw unusable(file, 'it is larger than 256 KiB');
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
  refuseHostile(file, text);
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

/** Counts, before anything is understood; so also brackets in texts count. */
function refuseHostile(file: string, text: string): void {
  let lines = 1;
  let open = 0;
  let indicators = 0;
  for (let index = 0; index < text.length; index++) {
    const character = text[index];
    if (character === '[' || character === '{') open++;
    else if ((character === ']' || character === '}') && open > 0) open--;
    else if (character === '\n') {
      lines++;
      indicators = 0;
    } else if (character === '-' || character === '?' || character === ':') {
      const next = text[index + 1];
      if (next === ' ' || next === '\t') indicators++;
    }
    if (open > mostOpenBrackets)
      throw unusable(file, `line ${lines} has more than ${mostOpenBrackets} open brackets`);
    if (indicators > mostIndicatorsInLine) throw unusable(file, `line ${lines} is nested too deeply`);
  }
  if (lines > mostLines) throw unusable(file, `it has more than ${mostLines} lines`);
}

function parseYaml(file: string, text: string, lines: LineCounter): Document {
  let document: Document;
  try {
    // The parser's own search for keys that come twice takes quadratic time.
    document = parseDocument(text, {
      lineCounter: lines,
      prettyErrors: false,
      strict: true,
      uniqueKeys: false,
    });
  } catch (error) {
    throw unusable(file, 'it cannot be read as YAML', error);
  }
  // A warning is a tag that nobody resolves: the value would not be what was written.
  const found = [...document.errors, ...document.warnings].map((error) => ({
    ...position(lines, error.pos[0]),
    text: `is no valid YAML: ${error.message}`,
  }));
  if (found.length > 0) throw invalid(file, found);
  const twice = keysTwice(document).map(({ key, offset }) => ({
    ...position(lines, offset),
    text: `${JSON.stringify(key)} is there twice`,
  }));
  if (twice.length > 0) throw invalid(file, twice);
  return document;
}

function keysTwice(document: Document): readonly { readonly key: string; readonly offset: number }[] {
  const found: { key: string; offset: number }[] = [];
  visit(document, {
    Map(_, map) {
      const seen = new Set<string>();
      for (const { key } of map.items) {
        const name = keyName(key);
        if (seen.has(name)) found.push({ key: name.slice(0, 60), offset: startOf(key) ?? 0 });
        seen.add(name);
      }
    },
  });
  return found;
}

const keyName = (key: unknown): string => String(isScalar(key) ? key.value : key);

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
  const pair = node.items.find(({ key }) => keyName(key) === String(part));
  if (pair === undefined) return undefined;
  const key = startOf(pair.key);
  return { node: pair.value, place: wantsKey ? key : (startOf(pair.value) ?? key) };
}

const startOf = (node: unknown): number | undefined => (isNode(node) ? node.range?.[0] : undefined);
