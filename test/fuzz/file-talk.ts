/** File operations, trees and watches below /play, the one folder of the cage that can be written. */

import { operation } from '../../src/porter/file-operations.ts';
import { type Frame, frameType } from '../../src/porter/frame.ts';
import { PayloadWriter } from '../../src/porter/payload.ts';
import type { Random } from './random.ts';
import { anyOf, Ledger, type Said, type StreamNumbers, type Talk } from './talk.ts';
import { treeRecords } from './tree-bytes.ts';

const oddPaths = [
  '/',
  '/play',
  '/play/.',
  '/play/..',
  '/play/a/../b',
  '/play//a',
  '/dev/null',
  '/dev/ptmx',
  '/proc/self/mem',
  '/proc/self/fd/0',
  '/nowhere/at/all',
  'relative',
  '',
  '/play/a\0b',
  `/play/${'x'.repeat(255)}`,
  `/play/${'x'.repeat(300)}`,
  `/${'long/'.repeat(900)}`,
] as const;
const roots: readonly string[] = ['/', '/play/..'];
/** Most of them are there when the session begins. */
const names = ['a', 'b', 'c', 'd', 'a/x', 'a/y', 'b/x', 'b/fifo', 'c/x/y', 'link', 'link/x', 'e'] as const;

interface Going {
  readonly takes: 'bytes' | 'tree' | 'nothing';
  ended: boolean;
}

export class FileTalk implements Talk {
  readonly #random: Random;
  readonly #numbers: StreamNumbers;
  readonly #ledger: Ledger;
  readonly #going = new Map<number, Going>();

  constructor(random: Random, numbers: StreamNumbers) {
    this.#random = random;
    this.#numbers = numbers;
    this.#ledger = new Ledger(random);
  }

  say(): Said | undefined {
    const random = this.#random;
    const [stream, going] = anyOf(random, [...this.#going]) ?? [];
    if (stream === undefined || going === undefined || random.chance(3)) return this.#request();
    if (random.chance(20)) return { type: frameType.cancel, stream, payload: Buffer.alloc(0) };
    if (random.chance(2)) {
      const back = this.#ledger.take();
      return back === undefined ? undefined : { type: frameType.credit, ...back };
    }
    if (going.takes === 'nothing' && !random.chance(50)) return undefined;
    if (going.ended && !random.chance(50)) return undefined;
    going.ended = random.chance(3);
    const tree = going.takes === 'tree' && !random.chance(10);
    const data = tree ? treeRecords(random) : random.bytes(random.below(random.pick([2, 100, 5000])));
    return { type: frameType.stdin, stream, payload: going.ended ? Buffer.alloc(0) : data };
  }

  /** They end with their host. */
  restart(): void {
    this.#going.clear();
    this.#ledger.clear();
  }

  hear({ type, stream, payload }: Frame): void {
    if (type === frameType.data) this.#ledger.arrived(stream, payload.length);
    if (type !== frameType.done) return;
    this.#going.delete(stream);
    this.#ledger.close(stream);
  }

  #path(): string {
    return this.#random.chance(6) ? this.#random.pick(oddPaths) : `/play/${this.#random.pick(names)}`;
  }

  #request(): Said {
    const random = this.#random;
    const number = 1 + random.below(14);
    const stream = this.#numbers.next();
    const takes =
      number === operation.write ? 'bytes' : number === operation.putTree ? 'tree' : ('nothing' as const);
    this.#going.set(stream, { takes, ended: false });
    const fields = this.#fields(number);
    const payload = Buffer.concat([
      new PayloadWriter().u32(random.chance(50) ? random.number() : number).end(),
      random.chance(6) ? random.mutate(fields) : fields,
    ]);
    return { type: frameType.file, stream, payload, more: random.chance(150) };
  }

  #fields(number: number): Buffer {
    const random = this.#random;
    const yes = (): number => (random.chance(40) ? random.number() : random.below(2));
    const mode = (): number => (random.chance(20) ? random.number() : random.pick([0, 0o644, 0o755, 0o777]));
    const writer = new PayloadWriter();
    switch (number) {
      case operation.list:
        return writer
          .bytes(this.#path())
          .u32(random.pick([0, 1, 2, 4096, 4097]))
          .bytes(random.pick(['', 'a', 'b']))
          .end();
      case operation.read: {
        const length = random.chance(2) ? 2n ** 64n - 1n : BigInt(random.number());
        writer
          .bytes(random.chance(4) ? '/dev/zero' : this.#path())
          .u64(BigInt(random.below(4) === 0 ? random.number() : 0))
          .u64(length);
        return random.chance(2) ? writer.end() : writer.u32(yes()).end();
      }
      case operation.write:
        return writer
          .bytes(this.#path())
          .u32(random.chance(3) ? random.below(64) : random.pick([1, 2, 3, 5, 17, 25, 49]))
          .u32(mode())
          .end();
      case operation.mkdir:
        return writer.bytes(this.#path()).u32(mode()).u32(yes()).end();
      case operation.remove:
      case operation.watch:
        return writer
          .bytes(number === operation.watch && random.chance(2) ? '/play' : this.#path())
          .u32(yes())
          .end();
      case operation.rename:
        return writer.bytes(this.#path()).bytes(this.#path()).end();
      case operation.symlink:
        return writer
          .bytes(random.pick(['a', '..', '/play/link', '/etc', 'link']))
          .bytes(this.#path())
          .end();
      case operation.chmod: {
        const path = this.#path();
        // Whoever cannot go through the root finds nothing at all, and the sanitizers cannot report.
        const most = roots.includes(String(path)) ? 0o755 : 0;
        return writer
          .bytes(path)
          .u32((mode() | most) >>> 0)
          .end();
      }
      case operation.getTree: {
        writer.bytes(random.chance(3) ? this.#path() : '/play');
        if (random.chance(3)) return writer.end();
        writer.u32(random.chance(8) ? random.number() : 1);
        return writer.u64(BigInt(random.number())).u64(BigInt(random.number())).end();
      }
      case operation.putTree:
        return writer.bytes(random.chance(3) ? this.#path() : '/play').end();
      default:
        return writer.bytes(this.#path()).end();
    }
  }
}
