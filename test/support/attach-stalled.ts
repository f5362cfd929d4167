/** A client of the engine that is attached to a box and never reads. */

import { onTestFinished } from 'vitest';
import type { EngineConnection } from '../../src/engines/docker/wire/connection.ts';

export async function attachStalled(connection: EngineConnection, id: string): Promise<void> {
  const stalled = await connection.hijack({
    method: 'POST',
    path: `/containers/${id}/attach`,
    query: { stream: true, stdout: true, stderr: true },
  });
  stalled.pause();
  onTestFinished(() => {
    stalled.destroy();
  });
}
