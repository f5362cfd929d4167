/** This process's terminal as the terminal of a program inside: raw keys in, size changes told, all put back at the end. */

import type { Exec } from '../porter/exec.ts';

export function ownTerminalSize(): { readonly rows: number; readonly columns: number } {
  // A terminal that does not know its size says 0.
  return { rows: process.stdout.rows || 24, columns: process.stdout.columns || 80 };
}

/** Returns what puts the terminal back as it was. */
export function feedTerminal(exec: Exec): () => void {
  const { stdin, stdout } = process;
  // Raw: Ctrl-C and the like are for the program inside, which has a terminal of its own to make signals of them.
  stdin.setRawMode(true);
  const onData = (chunk: Buffer): void => void exec.write(chunk);
  const onResize = (): void => {
    const { rows, columns } = ownTerminalSize();
    exec.resize(rows, columns);
  };
  stdin.on('data', onData);
  stdin.resume();
  stdout.on('resize', onResize);
  return () => {
    stdin.off('data', onData);
    stdout.off('resize', onResize);
    stdin.setRawMode(false);
    stdin.pause();
  };
}
