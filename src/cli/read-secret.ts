/** The value of a secret: piped in, or typed without being shown. Never from the command line, which others can read. */

import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { SallyportError } from '../protocol/errors.ts';
import { prompt } from './output.ts';

export async function readSecret(question: string, signal: AbortSignal): Promise<string> {
  const value = process.stdin.isTTY ? await ask(question, signal) : await text(process.stdin);
  const line = value.replace(/\r?\n$/, '');
  if (line !== '') return line;
  throw new SallyportError('secret_invalid', 'standard input has no value', {
    advice: 'Pipe the value in (`sally secret set NAME < file`), or call from a terminal to type it.',
  });
}

async function ask(question: string, signal: AbortSignal): Promise<string> {
  // In terminal mode the reader turns the echo off and would write the letters itself: they go nowhere.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: nowhere, terminal: true });
  // After the echo is off: somebody may be quick.
  prompt(`sally: ${question} (not shown): `);
  try {
    const cancelled = new Promise<never>((_resolve, reject) => {
      lines.once('SIGINT', () => reject(new SallyportError('cancelled', 'nothing was set')));
      lines.once('close', () => reject(new SallyportError('cancelled', 'nothing was set')));
    });
    return await Promise.race([lines.question('', { signal }), cancelled]);
  } finally {
    lines.close();
    prompt('\n');
  }
}
