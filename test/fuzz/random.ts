/** Randomness that can be had again: the same seed gives the same cases on every machine. */

export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** mulberry32 */
  u32(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (t ^ (t >>> 14)) >>> 0;
  }

  /** From 0 up to and without `end`. */
  below(end: number): number {
    return this.u32() % end;
  }

  chance(oneIn: number): boolean {
    return this.below(oneIn) === 0;
  }

  pick<const T extends readonly [unknown, ...unknown[]]>(items: T): T[number] {
    return items[this.below(items.length)];
  }

  bytes(length: number): Buffer {
    const out = Buffer.allocUnsafe(length);
    for (let index = 0; index < length; index++) out[index] = this.u32();
    return out;
  }

  /** Numbers at which programs go wrong, and any others. */
  number(): number {
    const edges = [
      0, 1, 2, 3, 7, 8, 9, 100, 0x7fff, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff,
    ] as const;
    return this.chance(4) ? this.u32() : this.pick(edges);
  }

  /** One to three small damages. */
  mutate(bytes: Buffer): Buffer {
    let out = Buffer.from(bytes);
    for (let count = 1 + this.below(3); count > 0 && out.length > 0; count--) {
      const at = this.below(out.length);
      const length = 1 + this.below(8);
      switch (this.below(6)) {
        case 0:
          out[at] = (out[at] ?? 0) ^ (1 << this.below(8));
          break;
        case 1:
          out[at] = this.u32();
          break;
        case 2:
          out = Buffer.concat([out.subarray(0, at), out.subarray(at + length)]);
          break;
        case 3:
          out = Buffer.concat([out.subarray(0, at), this.bytes(length), out.subarray(at)]);
          break;
        case 4:
          out = Buffer.concat([out, out.subarray(at, at + length)]);
          break;
        default:
          if (at + 4 <= out.length) out.writeUInt32LE(this.number(), at);
      }
    }
    return out;
  }

  chop(bytes: Buffer): Buffer[] {
    const pieces: Buffer[] = [];
    const largest = this.pick([1, 3, 20, 64, 1000, 100_000]);
    for (let offset = 0; offset < bytes.length; ) {
      const length = 1 + this.below(largest);
      pieces.push(bytes.subarray(offset, offset + length));
      offset += length;
      // Single bytes cost much and teach little after the first few hundred.
      if (pieces.length === 300) return [...pieces, bytes.subarray(offset)];
    }
    return pieces;
  }
}
