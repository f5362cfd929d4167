import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { joinThread, type StreamMessage, ThreadStream } from './thread-stream.ts';

/** Two ends, as if each were in a thread of its own. */
function pair(): { readonly here: ThreadStream; readonly there: ThreadStream } {
  const post = (to: () => ThreadStream) => (message: StreamMessage) =>
    void setImmediate(() => to().receive(message));
  const here: ThreadStream = new ThreadStream(post(() => there));
  const there: ThreadStream = new ThreadStream(post(() => here));
  return { here, there };
}

const closing = (stream: ThreadStream): Promise<void> =>
  new Promise((resolve) => void stream.once('close', () => resolve()));

/** Without destroying it at its end, as an iterator would. */
async function all(stream: ThreadStream): Promise<Buffer> {
  const pieces: Buffer[] = [];
  stream.on('data', (piece: Buffer) => pieces.push(piece));
  await new Promise((resolve) => stream.once('end', resolve));
  return Buffer.concat(pieces);
}

describe('a connection between threads', () => {
  it('passes every byte in both directions, and the end of each by itself', async () => {
    const { here, there } = pair();
    const sent = Buffer.from(Array.from({ length: 1_000_000 }, (_, at) => at % 251));
    here.end(sent);
    expect((await all(there)).equals(sent)).toBe(true);
    expect(there.writable).toBe(true);
    there.end('an answer');
    expect((await all(here)).toString()).toBe('an answer');
  });

  it('sends no more than its window ahead of a reader that does not read', async () => {
    let bytes = 0;
    const stream = new ThreadStream((message) => {
      if ('data' in message) bytes += message.data.byteLength;
    });
    const piece = Buffer.alloc(64 * 1024);
    for (let count = 0; count < 100; count++) stream.write(piece);
    await new Promise((resolve) => setImmediate(resolve));
    expect(bytes).toBe(256 * 1024);
    stream.receive({ taken: 128 * 1024 });
    expect(bytes).toBe(384 * 1024);
    stream.destroy();
  });

  it('is over on both ends when one is destroyed, and what was sent before is still read', async () => {
    const { here, there } = pair();
    const gone = closing(there);
    here.end('last words', () => here.destroy());
    const outside = new PassThrough();
    joinThread(outside, there);
    const [first] = await new Promise<Buffer[]>((resolve) =>
      outside.once('data', (data: Buffer) => resolve([data])),
    );
    expect(first?.toString()).toBe('last words');
    await gone;
    const other = pair();
    const lost = closing(other.there);
    other.here.destroy();
    await lost;
  });
});
