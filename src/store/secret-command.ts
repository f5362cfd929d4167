/**
 * Values that a command of the user's makes, run on the host. What the command prints is a secret, and so may be what it
 * complains of: neither is ever in an error.
 */

import { execFile } from 'node:child_process';
import { SallyportError } from '../protocol/errors.ts';
import { fewestSecretCharacters, secretValue } from '../protocol/secrets.ts';

const commandMs = 15_000;
const mostOutputBytes = 64 * 1024;

export async function runSecretCommand(
  name: string,
  [program = '', ...args]: readonly string[],
): Promise<string> {
  const output = await new Promise<string>((resolve, reject) => {
    const options = { timeout: commandMs, maxBuffer: mostOutputBytes, cwd: '/', encoding: 'utf8' } as const;
    const child = execFile(program, args, options, (error, stdout) => {
      if (error === null) resolve(stdout);
      else reject(failed(name, program, why(error)));
    });
    child.stdin?.end();
  });
  const line = output.replace(/\r?\n$/, '');
  const value = secretValue.safeParse(line);
  if (!value.success && line.length < fewestSecretCharacters) {
    throw failed(name, program, `printed fewer than ${fewestSecretCharacters} characters`);
  }
  if (!value.success) throw failed(name, program, 'printed something that is no token of one line');
  return value.data;
}

function why(error: Error & { code?: unknown; killed?: boolean; signal?: unknown }): string {
  if (error.killed === true) return `took longer than ${commandMs / 1000} s or printed too much`;
  if (error.code === 'ENOENT') return 'was not found';
  return typeof error.code === 'number' ? `ended with exit code ${error.code}` : 'could not be run';
}

const failed = (name: string, program: string, reason: string): SallyportError =>
  new SallyportError('secret_unavailable', `the command of the secret ${name} (${program}) ${reason}`, {
    details: { name, program },
  });
