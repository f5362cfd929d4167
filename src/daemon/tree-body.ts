/** Trees in the bodies of requests and answers: the records of docs/protocol.md, section 6, between the API and `Files`. */

import type { Readable } from 'node:stream';
import { encodeTreeHeader } from '../porter/tree-records.ts';
import { decodeTree, type TreeEntry, type TreeSource } from '../porter/tree-stream.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';

const batchBytes = 32 * 1024;

export async function* encodeEntries(entries: AsyncIterable<TreeEntry>): AsyncGenerator<Buffer> {
  let parts: Buffer[] = [];
  let bytes = 0;
  const add = (part: Buffer): boolean => {
    parts.push(part);
    bytes += part.length;
    return bytes >= batchBytes;
  };
  const take = (): Buffer => {
    const whole = Buffer.concat(parts, bytes);
    parts = [];
    bytes = 0;
    return whole;
  };
  for await (const entry of entries) {
    if (add(encodeTreeHeader(entry))) yield take();
    for await (const chunk of entry.body) if (add(chunk)) yield take();
  }
  if (bytes > 0) yield take();
}

export async function* readTree(body: Readable): AsyncGenerator<TreeSource> {
  const entries = decodeTree({
    // Giving up early must not cut the connection: the refusal has to arrive.
    data: () => body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>,
    trust: refusing,
  });
  for await (const entry of entries) yield sourceOf(entry);
}

/** These records come from the client: what is wrong with them is wrong with its request. */
function refusing<T>(read: () => T): T {
  try {
    return read();
  } catch (cause) {
    const reason = isSallyportError(cause) ? cause.message.replace(/^.*?: /, '') : 'unreadable';
    throw new SallyportError('request_invalid', `the body is no tree: ${reason}`, {
      details: { field: 'body' },
      cause,
    });
  }
}

function sourceOf({ kind, path, mode, mtimeNs, sizeBytes, target, body }: TreeEntry): TreeSource {
  switch (kind) {
    case 'file':
      return { kind, path, mode, mtimeNs, body: { sizeBytes, chunks: body } };
    case 'directory':
      return { kind, path, mode, mtimeNs };
    case 'link':
      return { kind, path, target, mtimeNs };
    case 'other':
      throw new SallyportError(
        'request_invalid',
        `${path.toString('utf8')} is neither file, directory nor link`,
        {
          details: { field: 'body' },
        },
      );
  }
}
