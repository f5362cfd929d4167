/** A real SSH agent with one key of the test's own. */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { newFolder } from './cli.ts';

export interface TestAgent {
  readonly folder: string;
  readonly socket: string;
  readonly fingerprint: string;
  /** As `authorized_keys` has it. */
  readonly publicKey: string;
  readonly start: () => Promise<ChildProcess>;
}

/** In a folder of its own, and not started yet. */
export async function testAgent(): Promise<TestAgent> {
  const folder = await newFolder('own');
  const socket = join(folder, 'agent');
  const key = join(folder, 'key');
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'of the test', '-f', key]);
  const start = async (): Promise<ChildProcess> => {
    const child = spawn('ssh-agent', ['-D', '-a', socket], { stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    // It tells where it listens when it does.
    await once(child.stdout, 'data');
    execFileSync('ssh-add', ['-q', key], { env: { ...process.env, SSH_AUTH_SOCK: socket } });
    return child;
  };
  const line = execFileSync('ssh-keygen', ['-lf', key], { encoding: 'utf8' });
  const publicKey = readFileSync(`${key}.pub`, 'utf8').trim();
  return { folder, socket, fingerprint: line.split(' ')[1] ?? '', publicKey, start };
}
