/** One answer of HTTP/1.1, put together from what arrives. Throws on what is none. */

export interface WholeAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
  /** No other request may follow on its connection. */
  readonly isLast: boolean;
}

interface Head {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  /** Undefined: in chunks. */
  readonly length: number | undefined;
}

const mostHeadBytes = 64 * 1024;
const mostSizeLineBytes = 32;
const lineEnd = '\r\n';
const nothing = Buffer.alloc(0);

export class AnswerReader {
  readonly #onHead: ((headers: ReadonlyMap<string, string>) => void) | undefined;
  readonly #body: Buffer[] = [];
  #bodyBytes = 0;
  /** What is not understood yet. */
  #rest: Buffer = nothing;
  #head: Head | undefined;
  /** Of the chunk that is read. */
  #left = 0;
  #expects: 'size' | 'data' | 'end of data' | 'end' = 'size';

  constructor(onHead?: (headers: ReadonlyMap<string, string>) => void) {
    this.#onHead = onHead;
  }

  /** Undefined: there is more to come. */
  add(piece: Buffer): WholeAnswer | undefined {
    this.#rest = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece]);
    this.#head ??= this.#readHead();
    const head = this.#head;
    if (head === undefined) return undefined;
    const isWhole = head.length === undefined ? this.#readChunks() : this.#readLength(head.length);
    if (!isWhole) return undefined;
    if (this.#rest.length > 0) throw new Error('more was answered than was asked');
    const { status, headers } = head;
    const [first = nothing] = this.#body;
    const body = this.#body.length > 1 ? Buffer.concat(this.#body) : first;
    return { status, headers, body, isLast: headers.get('connection') === 'close' };
  }

  #readHead(): Head | undefined {
    const end = this.#rest.indexOf('\r\n\r\n');
    if (end === -1) {
      if (this.#rest.length > mostHeadBytes) throw new Error('the head of the answer does not end');
      return undefined;
    }
    const [first = '', ...lines] = this.#rest.toString('latin1', 0, end).split(lineEnd);
    this.#rest = this.#rest.subarray(end + 4);
    const status = /^HTTP\/1\.1 ([2-5]\d\d)(?: |$)/.exec(first)?.[1];
    if (status === undefined) throw new Error('this is no answer');
    const headers = new Map(lines.map(headerOf));
    this.#onHead?.(headers);
    return { status: Number(status), headers, length: lengthOf(Number(status), headers) };
  }

  #readLength(length: number): boolean {
    this.#take(this.#rest.length);
    if (this.#bodyBytes > length) throw new Error('the answer is longer than it says');
    return this.#bodyBytes === length;
  }

  #readChunks(): boolean {
    for (;;) {
      if (this.#expects === 'data') {
        this.#left -= this.#take(Math.min(this.#left, this.#rest.length));
        if (this.#left > 0) return false;
        this.#expects = 'end of data';
      }
      const line = this.#line();
      if (line === undefined) return false;
      if (this.#expects === 'size') {
        if (!/^[0-9a-f]{1,12}$/i.test(line)) throw new Error('a chunk has no size');
        this.#left = Number.parseInt(line, 16);
        this.#expects = this.#left === 0 ? 'end' : 'data';
      } else {
        if (line !== '') throw new Error('a chunk does not end where it should');
        if (this.#expects === 'end') return true;
        this.#expects = 'size';
      }
    }
  }

  #line(): string | undefined {
    const end = this.#rest.indexOf(lineEnd);
    if (end === -1 && this.#rest.length <= mostSizeLineBytes) return undefined;
    if (end === -1 || end > mostSizeLineBytes) throw new Error('a chunk has no size');
    const line = this.#rest.toString('latin1', 0, end);
    this.#rest = this.#rest.subarray(end + lineEnd.length);
    return line;
  }

  #take(bytes: number): number {
    if (bytes > 0) this.#body.push(this.#rest.subarray(0, bytes));
    this.#bodyBytes += bytes;
    this.#rest = bytes === this.#rest.length ? nothing : this.#rest.subarray(bytes);
    return bytes;
  }
}

function headerOf(line: string): [string, string] {
  const colon = line.indexOf(':');
  if (colon < 1) throw new Error('a header has no name');
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
}

function lengthOf(status: number, headers: ReadonlyMap<string, string>): number | undefined {
  if (status === 204 || status === 304) return 0;
  if (headers.get('transfer-encoding') === 'chunked') return undefined;
  const length = headers.get('content-length') ?? '';
  if (!/^\d{1,15}$/.test(length)) throw new Error('the answer has no length');
  return Number(length);
}
