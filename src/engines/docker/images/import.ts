import type { Readable } from 'node:stream';
import { type Progress, silent } from '../../../lib/progress.ts';
import { SallyportError } from '../../../protocol/errors.ts';
import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { beforeStream, progressLines } from './progress-stream.ts';

/**
 * Makes an image of one layer from a tar stream of a root file system; `changes` are Dockerfile lines (`LABEL …`).
 * Without `tag` the image is untagged, so that a producer which turns out to have failed can be undone by its id.
 */
export async function importImage(
  connection: EngineConnection,
  rootfs: Readable,
  request: {
    readonly repository?: string;
    readonly tag?: string;
    readonly changes?: readonly string[];
    readonly platform?: string;
  },
  options: CallOptions & { readonly progress?: Progress } = {},
): Promise<string> {
  const { progress = silent, ...call } = options;
  const changes = (request.changes ?? []).map((change) => `&changes=${encodeURIComponent(change)}`).join('');
  const query = new URLSearchParams({ fromSrc: '-' });
  if (request.repository !== undefined) query.set('repo', request.repository);
  if (request.tag !== undefined) query.set('tag', request.tag);
  if (request.platform !== undefined) query.set('platform', request.platform);
  const stream = await connection
    .stream({
      method: 'POST',
      path: `/images/create?${query}${changes}`,
      headers: { 'Content-Type': 'application/x-tar' },
      upload: rootfs,
      timeoutMs: 300_000,
      ...call,
    })
    .catch(beforeStream('import image', 'image_build_failed'));
  let id: string | undefined;
  for await (const line of progressLines(stream, 'import image', 'image_build_failed')) {
    if (line.status?.startsWith('sha256:')) id = line.status;
    else if (line.status !== undefined) progress({ step: 'import', message: line.status });
  }
  if (id === undefined)
    throw new SallyportError('engine_protocol', 'the engine imported an image and named no id');
  return id;
}
