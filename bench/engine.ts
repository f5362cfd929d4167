/** The engine of a benchmark and the test image on it, found as the product finds them; nothing is installed for it. */

import { readEngineEnvironment } from '../src/engines/docker/config.ts';
import { dockerImageEngine } from '../src/engines/docker/image-engine.ts';
import type { EngineConnection } from '../src/engines/docker/wire/connection.ts';
import { ensureImage } from '../src/images/ensure-image.ts';
import { readSetupEnvironment } from '../src/setup/config.ts';
import { ensureEngine } from '../src/setup/ensure-engine.ts';

/** What whoever sets something up for a benchmark is told, and what it may do unasked. */
export const attended = {
  progress: ({ message }: { readonly message: string }): void => void process.stderr.write(`${message}\n`),
  consent: async (): Promise<boolean> => false,
};

export async function benchConnection(): Promise<EngineConnection> {
  const { found } = await ensureEngine({
    environment: readEngineEnvironment(),
    setup: readSetupEnvironment(),
    ...attended,
  });
  return found.connection;
}

/** Its reference. */
export async function testImage(connection: EngineConnection): Promise<string> {
  const engine = dockerImageEngine(connection);
  return (await ensureImage('test', { engine, ...attended })).reference;
}
