/** A connection to a port inside a sandbox, on behalf of a client of this machine. */

import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { deferred } from '../lib/deferred.ts';
import type { SandboxSurface } from './surface.ts';

const connectMs = 10_000;

/** Ends with the asker. The sandbox counts as used meanwhile, and `open` contains the connection. */
export async function connectInside(
  sandbox: SandboxSurface,
  port: number,
  asker: Duplex | ServerResponse,
  open: Set<Duplex>,
): Promise<Duplex> {
  const release = sandbox.hold();
  const over = deferred<void>();
  asker.once('close', () => over.resolve());
  try {
    const inside = await sandbox.connect({ host: 'localhost', port }, AbortSignal.timeout(connectMs));
    inside.on('error', () => {});
    open.add(inside);
    inside.once('close', () => {
      open.delete(inside);
      release();
    });
    void over.promise.then(() => inside.destroy());
    return inside;
  } catch (error) {
    release();
    throw error;
  }
}
