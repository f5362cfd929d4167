import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { newPhantom, PhantomRegistry } from './phantoms.ts';
import { scanned } from './scan-body.ts';

const phantom = newPhantom('sk-');
const registry = new PhantomRegistry();
registry.add(phantom, { sandbox: 'box', secret: 'ci' });

async function* piecesOf(body: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < body.length; at += 10_000) yield body.subarray(at, at + 10_000);
}

/** Everything that passes; rejects where a phantom is found. */
async function passed(body: Buffer, coding: string | undefined): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of scanned(piecesOf(body), coding, registry, () => new Error('found'))) {
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

const packers = {
  gzip: gzipSync,
  'x-gzip': gzipSync,
  deflate: deflateSync,
  br: brotliCompressSync,
} as const;

describe('a packed body that leaves a sandbox', () => {
  it('passes as it is, and not where it has a phantom in it, whichever way it is packed', async () => {
    const plain = Buffer.from('x'.repeat(200_000));
    const marked = Buffer.concat([plain, Buffer.from(phantom), plain]);
    for (const [coding, pack] of Object.entries(packers)) {
      expect([coding, (await passed(pack(plain), coding)).equals(pack(plain))]).toEqual([coding, true]);
      await expect(passed(pack(marked), coding), coding).rejects.toThrow('found');
    }
    await expect(passed(deflateRawSync(marked), 'deflate')).rejects.toThrow('found');
  });

  it('is searched also where it unpacks to more than is searched, or breaks off', async () => {
    const bomb = gzipSync(Buffer.concat([Buffer.from(phantom), Buffer.alloc(20 * 2 ** 20)]));
    expect(bomb.length).toBeLessThan(2 ** 20);
    await expect(passed(bomb, 'gzip')).rejects.toThrow('found');
    await expect(passed(bomb.subarray(0, -1000), 'gzip')).rejects.toThrow('found');
    const harmless = gzipSync(Buffer.alloc(20 * 2 ** 20));
    expect((await passed(harmless, 'gzip')).equals(harmless)).toBe(true);
  });

  it('[N22] is unpacked in small steps, between which everybody else has a turn', async () => {
    const bomb = gzipSync(Buffer.alloc(16 * 2 ** 20 - 1), { level: 9 });
    let turns = 0;
    const count = (): void => {
      turns++;
      next = setImmediate(count);
    };
    let next = setImmediate(count);
    await passed(bomb, 'gzip');
    clearImmediate(next);
    expect(turns).toBeGreaterThan(100);
  });

  it('is given up when nobody wants it any more', async () => {
    const gone = new AbortController();
    gone.abort(new Error('the request is over'));
    const bomb = gzipSync(Buffer.alloc(2 ** 20));
    const body = scanned(piecesOf(bomb), 'gzip', registry, () => undefined, { signal: gone.signal });
    await expect(body[Symbol.asyncIterator]().next()).rejects.toThrow('the request is over');
  });
});
