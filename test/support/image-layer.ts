/** An image on another, made by a test: the lines of a Dockerfile, run as root, and labels that come on top of what it has. */

import { Readable } from 'node:stream';
import { packTar } from 'modern-tar';
import { dockerImageEngine } from '../../src/engines/docker/image-engine.ts';
import { silent } from '../../src/lib/progress.ts';
import type { TestEngine } from './engine.ts';

/** The id; untagged. One step for each line and label, so the run's labels are given only where `from` has none. */
export async function buildLayer(
  { connection }: TestEngine,
  from: string,
  lines: string,
  more: Readonly<Record<string, string>> = {},
): Promise<string> {
  const body = Buffer.from(`FROM ${from}\nUSER root\n${lines}\n`);
  const context = Buffer.from(
    await packTar([{ header: { name: 'Dockerfile', type: 'file', size: body.length, mode: 0o644 }, body }]),
  );
  return await dockerImageEngine(connection).build(
    Readable.from([context]),
    // The builder's cache would fail the build while a test beside this one removes an image of it.
    { dockerfile: 'Dockerfile', buildArgs: {}, labels: more, networkMode: 'none', noCache: true },
    { progress: silent },
  );
}
