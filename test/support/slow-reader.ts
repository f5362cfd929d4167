/**
 * A program for `runChild`: reads a large output of the engine slowly and prints by how much its memory grew. In a process
 * of its own, because the memory of a test runner says nothing.
 */

import { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { packTar } from 'modern-tar';
import { connect } from '../../src/engines/docker/connect.ts';
import { getArchive } from '../../src/engines/docker/containers/get-archive.ts';
import { parseEndpoint } from '../../src/engines/docker/endpoint/endpoint.ts';
import { buildImage } from '../../src/engines/docker/images/build.ts';
import type { EngineConnection } from '../../src/engines/docker/wire/connection.ts';

export interface SlowReading {
  readonly bytes: number;
  readonly rssGrowthBytes: number;
  readonly durationMs: number;
}

/** The sizes of the pieces as they arrive. */
type Pieces = AsyncGenerator<number>;

async function* archive(connection: EngineConnection, id: string, path: string): Pieces {
  const stream = await getArchive(connection, id, path);
  for await (const chunk of stream as AsyncIterable<Buffer>) yield chunk.length;
}

async function* build(connection: EngineConnection, dockerfile: string, labels: string): Pieces {
  const context = Buffer.from(
    await packTar([
      { header: { name: 'Dockerfile', size: Buffer.byteLength(dockerfile) }, body: dockerfile },
    ]),
  );
  const request = {
    noCache: true,
    networkMode: 'none',
    labels: JSON.parse(labels) as Record<string, string>,
  };
  for await (const { text } of buildImage(connection, Readable.from([context]), request)) yield text.length;
}

/** Slower than any engine gives, and the slower the more comes at once: what piles up must show. */
const bytesPerMs = 80_000;
const pieceBytes = 2 ** 18;
/**
 * V8 lets about 32 MB of buffers that nobody holds any more lie before it collects them, whoever reads and however. That
 * is not growth; so it is asked to collect now and then (`--expose-gc`), and what is left is what is held.
 */
const collectBytes = 8 * 2 ** 20;

async function readSlowly(pieces: Pieces): Promise<SlowReading> {
  const started = performance.now();
  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  let bytes = 0;
  let collectAt = collectBytes;
  let sinceRest = 0;
  let peak = before;
  for await (const length of pieces) {
    bytes += length;
    sinceRest += length;
    if (sinceRest < pieceBytes) continue;
    await pause(sinceRest / bytesPerMs);
    sinceRest = 0;
    if (bytes > collectAt) {
      globalThis.gc?.();
      collectAt = bytes + collectBytes;
    }
    peak = Math.max(peak, process.memoryUsage().rss);
  }
  return { bytes, rssGrowthBytes: peak - before, durationMs: Math.round(performance.now() - started) };
}

const [endpoint = '', kind = '', first = '', second = ''] = process.argv.slice(2);
const connection = await connect(parseEndpoint(endpoint));
const pieces = kind === 'archive' ? archive(connection, first, second) : build(connection, first, second);
process.stdout.write(JSON.stringify(await readSlowly(pieces)));
