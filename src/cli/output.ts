/**
 * What people and scripts see: results on stdout, everything else on stderr, every message with the same prefix.
 *
 * SECURITY: the one place of the command line that writes (scripts/bans.mjs). What others wrote is made harmless here: on stderr
 * always, on stdout where it is a terminal. Only the output of the user's own command goes through as it is.
 */

import { StringDecoder } from 'node:string_decoder';
import { harmlessJson } from '../lib/harmless-json.ts';
import { isSallyportError } from '../protocol/errors.ts';
import { colours, harmless, isPainted } from './harmless.ts';

export function print(text: string): void {
  process.stdout.write(`${process.stdout.isTTY || isPainted(text) ? harmless(text) : text}\n`);
}

export function printJson(value: unknown): void {
  process.stdout.write(`${harmlessJson(value, 2)}\n`);
}

export function note(text: string): void {
  process.stderr.write(`${harmless(`sally: ${text}`)}\n`);
}

/** Without a line end, for what is typed after it. */
export function prompt(text: string): void {
  process.stderr.write(harmless(text));
}

/** Where lines can be drawn again in place. Undefined: stderr is no terminal. */
export function terminalSize(): { readonly rows: number; readonly columns: number } | undefined {
  const { isTTY, rows, columns } = process.stderr;
  return isTTY === true ? { rows: rows || 24, columns: columns || 80 } : undefined;
}

/** The line of the cursor, which the next call replaces; an empty text clears it. */
export function redrawLine(text: string): void {
  process.stderr.write(`\r\x1b[2K${text === '' ? '' : harmless(colours.dim(shortened(harmless(text))))}`);
}

/** Lines in the place of as many above the cursor as the call before drew. */
export function redrawLines(lines: readonly string[], above: number): void {
  const clear = above === 0 ? '' : `\x1b[${above}A\x1b[0J`;
  process.stderr.write(`${clear}${lines.map((line) => `${shortened(harmless(line))}\n`).join('')}`);
}

/** A line that wraps could not be replaced. */
const shortened = (line: string): string =>
  line.slice(0, Math.max(20, (terminalSize()?.columns ?? line.length + 1) - 1));

/** A line of stderr without a prefix. */
export function noteRow(text: string): void {
  process.stderr.write(`${harmless(text)}\n`);
}

/** What the user's own command has printed, as it is. */
export function printOutput({ stdout, stderr }: { readonly stdout: string; readonly stderr: string }): void {
  process.stdout.write(stdout);
  process.stderr.write(stderr);
}

/** Content of a file for stdout: byte by byte into a pipe, and harmless on a terminal. */
export async function* shownContent(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  if (!process.stdout.isTTY) {
    yield* chunks;
    return;
  }
  const decoder = new StringDecoder('utf8');
  for await (const chunk of chunks) yield Buffer.from(harmless(decoder.write(chunk)));
  yield Buffer.from(harmless(decoder.end()));
}

/** What failed, then what to do: at most three lines, whatever the error was. */
export function describeError(error: unknown): string {
  if (!isSallyportError(error)) {
    const message = error instanceof Error ? error.message : String(error);
    return harmless(
      `sally: ${colours.red('internal error')}: ${message}\nsally: this is a bug in Sallyport; SALLYPORT_DEBUG=1 shows where`,
    );
  }
  return harmless(`sally: ${error.message}\nsally: ${error.advice}`);
}

export function sayError(error: unknown): void {
  process.stderr.write(`${describeError(error)}\n`);
}

export function printError(
  error: unknown,
  options: { readonly json: boolean; readonly debug: boolean },
): void {
  if (options.json && isSallyportError(error)) {
    const { code, kind, message, advice, details } = error;
    printJson({ error: { code, kind, message, advice, details } });
  }
  sayError(error);
  if (options.debug && error instanceof Error) process.stderr.write(`${harmless(causeChain(error))}\n`);
}

function causeChain(error: Error): string {
  const stack = error.stack ?? error.message;
  return error.cause instanceof Error ? `${stack}\ncaused by: ${causeChain(error.cause)}` : stack;
}
