import { once } from 'node:events';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AgentRequests } from './agent-requests.ts';

function request(type: number, body: Uint8Array = new Uint8Array()): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(body.length + 1);
  head.writeUInt8(type, 4);
  return Buffer.concat([head, body]);
}

async function passed(pieces: readonly Buffer[]): Promise<Buffer> {
  const filter = new AgentRequests();
  const out: Buffer[] = [];
  filter.on('data', (chunk: Buffer) => out.push(chunk));
  const ended = once(filter, 'end');
  for (const piece of pieces) filter.write(piece);
  filter.end();
  await ended;
  return Buffer.concat(out);
}

describe('requests to an SSH agent', () => {
  it('pass if they ask for keys or signatures, and become one that no agent knows if they do not', async () => {
    const one = fc.record({ type: fc.integer({ min: 0, max: 255 }), body: fc.uint8Array({ maxLength: 40 }) });
    await fc.assert(
      fc.asyncProperty(
        fc.array(one, { maxLength: 8 }),
        fc.integer({ min: 1, max: 60 }),
        async (asked, step) => {
          const bytes = Buffer.concat(asked.map(({ type, body }) => request(type, body)));
          const pieces: Buffer[] = [];
          for (let at = 0; at < bytes.length; at += step) pieces.push(bytes.subarray(at, at + step));
          const expected = asked.map(({ type, body }) =>
            type === 11 || type === 13 ? request(type, body) : request(0),
          );
          expect(await passed(pieces)).toEqual(Buffer.concat(expected));
        },
      ),
    );
  });

  it.each([
    ['add a key', 17],
    ['remove a key', 18],
    ['remove all keys', 19],
    ['load a library as a smart card', 20],
    ['lock', 22],
    ['an extension', 27],
  ])('never pass to %s', async (_name, type) => {
    expect(await passed([request(type, Buffer.from('x')), request(11)])).toEqual(
      Buffer.concat([request(0), request(11)]),
    );
  });

  it.each([0, 2 ** 20, 2 ** 32 - 1])('of %i bytes end the connection', async (length) => {
    const filter = new AgentRequests();
    const failed = once(filter, 'error');
    const head = Buffer.alloc(5, 11);
    head.writeUInt32BE(length);
    filter.write(head);
    expect(await failed).toEqual([expect.any(RangeError)]);
  });
});
