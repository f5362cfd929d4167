/** What a command printed, at most so many bytes of it: its head and its tail, and between them how much is left out. */

export class CappedOutput {
  readonly #headBytes: number;
  readonly #tailBytes: number;
  readonly #head: Buffer[] = [];
  #headLeft: number;
  #tail = Buffer.alloc(0);
  #total = 0;

  constructor(limitBytes: number) {
    this.#headBytes = Math.ceil(limitBytes / 2);
    this.#tailBytes = limitBytes - this.#headBytes;
    this.#headLeft = this.#headBytes;
  }

  add(chunk: Buffer): void {
    this.#total += chunk.length;
    const first = chunk.subarray(0, this.#headLeft);
    if (first.length > 0) this.#head.push(Buffer.from(first));
    this.#headLeft -= first.length;
    const rest = chunk.subarray(first.length);
    if (rest.length === 0) return;
    const joined = Buffer.concat([this.#tail, rest.subarray(-this.#tailBytes)]);
    this.#tail = joined.subarray(Math.max(0, joined.length - this.#tailBytes));
  }

  text(): string {
    const head = Buffer.concat(this.#head);
    const dropped = this.#total - head.length - this.#tail.length;
    if (dropped === 0) return Buffer.concat([head, this.#tail]).toString('utf8');
    return `${head.toString('utf8')}\n[… ${dropped} bytes left out …]\n${this.#tail.toString('utf8')}`;
  }
}
