import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { Demultiplexer } from '../wire/demultiplex.ts';
import { pathSegment } from '../wire/path-segment.ts';

/** Both streams in the order of their arrival. With `follow` until the container ends or the reader leaves. */
export async function* containerLogs(
  connection: EngineConnection,
  id: string,
  options: CallOptions & { readonly tail?: number; readonly follow?: boolean } = {},
): AsyncGenerator<Buffer> {
  const { tail, follow = false, ...call } = options;
  const stream = await connection.stream({
    method: 'GET',
    path: `/containers/${pathSegment(id)}/logs`,
    query: { stdout: true, stderr: true, follow, tail: tail ?? 'all' },
    ...call,
  });
  let payloads: Buffer[] = [];
  const demultiplexer = new Demultiplexer((_name, payload) => payloads.push(payload));
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      demultiplexer.push(chunk);
      yield* payloads;
      payloads = [];
    }
  } finally {
    stream.destroy();
  }
}
