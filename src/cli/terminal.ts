/** This process's terminal as the terminal of a program inside: raw keys in, size changes told, all put back at the end. */

import type { ExecProcess } from '../sdk/exec-process.ts';

export function ownTerminalSize(): { readonly rows: number; readonly columns: number } {
  // A terminal that does not know its size says 0.
  return { rows: process.stdout.rows || 24, columns: process.stdout.columns || 80 };
}

const detachKeys = Buffer.from([0x10, 0x11]);

/** Returns what puts the terminal back as it was. `leave` is called at Ctrl-P Ctrl-Q, where it is given. */
export function feedTerminal(exec: ExecProcess, leave?: () => void): () => void {
  const { stdin } = process;
  // Raw: Ctrl-C and the like are for the program inside, which has a terminal of its own to make signals of them.
  stdin.setRawMode(true);
  let last: number | undefined;
  const onData = (chunk: Buffer): void => {
    const keys = last === undefined ? chunk : Buffer.concat([Buffer.from([last]), chunk]);
    last = chunk.at(-1);
    if (leave !== undefined && keys.includes(detachKeys)) leave();
    else exec.stdin.write(chunk);
  };
  const onResize = (): void => {
    const { rows, columns } = ownTerminalSize();
    // It may be over by now, and then its size is of no interest.
    exec.resize(rows, columns).catch(() => {});
  };
  stdin.on('data', onData);
  stdin.resume();
  process.stdout.on('resize', onResize);
  return () => {
    stdin.off('data', onData);
    process.stdout.off('resize', onResize);
    stdin.setRawMode(false);
    stdin.pause();
  };
}
