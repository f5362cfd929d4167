/**
 * A listener on loopback whose backlog is full: whoever connects waits, because the kernel drops its SYN. A process of its own,
 * because Node accepts whatever comes.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { onTestFinished } from 'vitest';

export interface FullBacklog {
  readonly port: number;
  /** From now on it takes what waits, and answers each with a word. */
  readonly accept: () => void;
  /** How many are waiting for an answer to their SYN. */
  readonly waiting: () => number;
}

/** With a backlog of 0 the kernel keeps one connection that nobody has accepted. */
const program = `
import socket, sys
listener = socket.socket()
listener.bind(('127.0.0.1', 0))
listener.listen(0)
first = socket.create_connection(listener.getsockname())
print(listener.getsockname()[1], flush=True)
sys.stdin.readline()
while True: listener.accept()[0].sendall(b'here')
`;
const synSent = '02';

export async function fullBacklog(): Promise<FullBacklog> {
  const child = spawn('python3', ['-c', program], { stdio: ['pipe', 'pipe', 'inherit'] });
  onTestFinished(async () => {
    const ended = once(child, 'exit');
    if (child.kill('SIGKILL')) await ended;
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const port = Number(line.toString());
  const remote = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const waiting = (): number =>
    readFileSync('/proc/net/tcp', 'latin1')
      .split('\n')
      .map((row) => row.trim().split(/\s+/))
      .filter(([, , to, state]) => to === remote && state === synSent).length;
  return { port, accept: () => void child.stdin.write('\n'), waiting };
}
