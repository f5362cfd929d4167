/**
 * The built command line on a pseudo-terminal, as a person has it: keys go in, the screen comes out, and the window can be
 * given another size. `script` makes the terminal, so nothing has to be compiled for it.
 */

import { execFileSync } from 'node:child_process';
import { StringDecoder } from 'node:string_decoder';
import { stripVTControlCharacters } from 'node:util';
import { cliLine, type RunningCli, startSally } from './cli.ts';
import { commandExists, requirement } from './requires.ts';

export const hasTerminal = requirement('script', commandExists('script'));

export interface TerminalSize {
  readonly rows: number;
  readonly columns: number;
}

export interface OnTerminal {
  readonly result: RunningCli['result'];
  /** Everything that was written to the screen so far, with what moves the cursor. */
  readonly raw: () => string;
  /** Resolves as soon as the screen was given this text, after what `raw` had at `from`. Spaces and moves of the cursor are one. */
  readonly shows: (text: string, from?: number) => Promise<void>;
  readonly type: (keys: string) => void;
  readonly resize: (size: TerminalSize) => void;
}

export const ctrlC = '\x03';
export const enter = '\r';

export interface TerminalOptions {
  readonly env?: Record<string, string>;
  readonly cwd?: string;
  readonly size?: TerminalSize;
  /** A shell line in the place of `sally` with the arguments. */
  readonly line?: string;
}

export async function sallyOnTerminal(
  args: readonly string[],
  { env = {}, cwd, size = { rows: 40, columns: 120 }, line }: TerminalOptions = {},
): Promise<OnTerminal> {
  const call = line ?? `${cliLine()} ${args.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')}`;
  const whole = `stty rows ${size.rows} cols ${size.columns}; echo "on:$(tty):"; ${call}`;
  const running = startSally(['-qec', whole, '/dev/null'], {
    env: { TERM: 'xterm-256color', ...env },
    ...(cwd === undefined ? {} : { cwd }),
    command: ['script'],
    openInput: true,
  });
  let written = '';
  const waiting = new Set<() => void>();
  const decoder = new StringDecoder('utf8');
  running.child.stdout?.on('data', (chunk: Buffer) => {
    written += decoder.write(chunk);
    for (const look of waiting) look();
  });
  const shows = (text: string, from = 0): Promise<void> =>
    new Promise((resolve, reject) => {
      const wanted = words(text);
      const look = (): void => {
        if (!words(written.slice(from)).includes(wanted)) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      look();
      running.result.then(
        () => reject(new Error(`ended without showing ${text}, but: ${printable(written.slice(from))}`)),
        reject,
      );
    });
  await shows('on:/dev/');
  await shows(':');
  const tty = /on:(\/dev\/\S+):/.exec(written)?.[1] ?? '';
  return {
    result: running.result,
    raw: () => written,
    shows,
    type: (keys) => void running.child.stdin?.write(keys),
    resize: ({ rows, columns }) =>
      void execFileSync('stty', ['-F', tty, 'rows', String(rows), 'cols', String(columns)]),
  };
}

/** Programs draw blanks as they like: as spaces, or by moving the cursor. */
const words = (screen: string): string => stripVTControlCharacters(screen).replace(/\s+/g, '');

const printable = (screen: string): string => stripVTControlCharacters(screen).slice(-2000);
