import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AnswerReader, type WholeAnswer } from './answer-reader.ts';

const withLength = (body: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Length: ${body.length}\r\n\r\n`), body]);

const inChunks = (chunks: readonly Buffer[]): Buffer =>
  Buffer.concat([
    Buffer.from('HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n'),
    ...chunks.flatMap((chunk) => [
      Buffer.from(`${chunk.length.toString(16)}\r\n`),
      chunk,
      Buffer.from('\r\n'),
    ]),
    Buffer.from('0\r\n\r\n'),
  ]);

/** One answer at the very end, and not before. */
function read(bytes: Buffer, cuts: readonly number[]): WholeAnswer | undefined {
  const reader = new AnswerReader();
  const places = [...new Set(cuts.map((cut) => cut % bytes.length)), bytes.length].sort((a, b) => a - b);
  let from = 0;
  let answer: WholeAnswer | undefined;
  for (const to of places) {
    expect(answer).toBeUndefined();
    if (to > from) answer = reader.add(bytes.subarray(from, to));
    from = to;
  }
  return answer;
}

const body = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));
const cuts = fc.array(fc.nat(), { maxLength: 20 });

describe('an answer of the daemon, however it is chopped', () => {
  it('is read by its length', () => {
    fc.assert(
      fc.property(body, cuts, (sent, places) => {
        const answer = read(withLength(sent), places);
        expect(answer).toMatchObject({ status: 200, isLast: false });
        expect(answer?.headers.get('x-a')).toBe('1');
        expect(answer?.body.equals(sent)).toBe(true);
      }),
    );
  });

  it('is read in chunks', () => {
    const some = fc.array(
      body.filter(({ length }) => length > 0),
      { maxLength: 5 },
    );
    fc.assert(
      fc.property(some, cuts, (sent, places) => {
        const answer = read(inChunks(sent), places);
        expect(answer).toMatchObject({ status: 201, isLast: true });
        expect(answer?.body.equals(Buffer.concat(sent))).toBe(true);
      }),
    );
  });

  it('tells its head before the rest is there', () => {
    const heads: Array<string | undefined> = [];
    const reader = new AnswerReader((headers) => heads.push(headers.get('x-id')));
    expect(
      reader.add(Buffer.from('HTTP/1.1 200 OK\r\nx-id: 7\r\ncontent-length: 1\r\n\r\n')),
    ).toBeUndefined();
    expect(heads).toEqual(['7']);
  });

  it.each([
    'HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n',
    'HTTP/1.1 100 Continue\r\n\r\n',
    'HTTP/1.1 200 OK\r\n\r\n',
    'HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n',
    'HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nab',
    'HTTP/1.1 200 OK\r\nno name\r\ncontent-length: 0\r\n\r\n',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nx\r\n',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc\r\n',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nmore',
    `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(70_000)}`,
  ])('is refused as what it is not: %.60j', (text) => {
    expect(() => new AnswerReader().add(Buffer.from(text))).toThrow();
  });
});
