/**
 * Stands between a program and the daemon of the run, byte for byte, and lets a test act at a request that it names: what
 * would otherwise be a race happens at that moment each time.
 */

import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, connect as dial, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { stateFolder } from './state-folder.ts';

/**
 * A state folder whose daemon is the run's. `act` is called once, before the first request whose line fits is passed on,
 * and the request waits for it.
 */
export async function daemonBetween(line: RegExp, act: () => Promise<void> | void): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sally-between-'));
  const sockets = new Set<Socket>();
  let hasActed = false;
  const server = createServer((client) => {
    const daemon = dial(join(stateFolder(), 'daemon.sock'));
    for (const socket of [client, daemon]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        client.destroy();
        daemon.destroy();
      });
    }
    daemon.pipe(client);
    let passed = Promise.resolve();
    client.on('data', (chunk: Buffer) => {
      passed = passed.then(async () => {
        if (!hasActed && line.test(chunk.toString('latin1'))) {
          hasActed = true;
          await act();
        }
        daemon.write(chunk);
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(join(folder, 'daemon.sock'), resolve));
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
    await rm(folder, { recursive: true, force: true });
  });
  return folder;
}
