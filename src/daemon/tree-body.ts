/** Trees as bodies of requests: the records of docs/protocol.md, section 6, on their way from a client to porter. */

import type { Readable } from 'node:stream';
import { TreeDecoder } from '../porter/tree-records.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';

/** The same bytes, looked at before they are handed on: taking each entry apart and together again costs more than all the rest. */
export async function* readRecords(body: Readable): AsyncGenerator<Buffer> {
  const decoder = new TreeDecoder();
  // Giving up early must not cut the connection: the refusal has to arrive.
  for await (const chunk of body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    refusing(() => look(decoder, chunk));
    yield chunk;
  }
  refusing(() => decoder.end());
}

function look(decoder: TreeDecoder, chunk: Buffer): void {
  for (const event of decoder.push(chunk)) {
    if (event.type !== 'entry' || event.header.kind !== 'other') continue;
    const path = event.header.path.toString('utf8');
    throw new SallyportError('request_invalid', `${path} is neither file, directory nor link`, {
      details: { field: 'body' },
    });
  }
}

/** These records come from the client: what is wrong with them is wrong with its request. */
function refusing<T>(read: () => T): T {
  try {
    return read();
  } catch (cause) {
    if (isSallyportError(cause, 'request_invalid')) throw cause;
    const reason = isSallyportError(cause) ? cause.message.replace(/^.*?: /, '') : 'unreadable';
    throw new SallyportError('request_invalid', `the body is no tree: ${reason}`, {
      details: { field: 'body' },
      cause,
    });
  }
}
