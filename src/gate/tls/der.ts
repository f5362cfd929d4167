/** The little of DER that a certificate needs. It only writes; nothing from outside is read here. */

export function der(tag: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  return Buffer.concat([Buffer.from([tag]), lengthOf(content.length), content]);
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return Buffer.from([0x80 | bytes.length, ...bytes]);
}

export const sequence = (...parts: readonly Buffer[]): Buffer => der(0x30, ...parts);
export const setOf = (...parts: readonly Buffer[]): Buffer => der(0x31, ...parts);
export const octets = (bytes: Buffer): Buffer => der(0x04, bytes);
export const utf8 = (text: string): Buffer => der(0x0c, Buffer.from(text));
export const bool = (value: boolean): Buffer => der(0x01, Buffer.from([value ? 0xff : 0]));
/** `unused` bits at the end of the last byte do not count. */
export const bits = (bytes: Buffer, unused = 0): Buffer => der(0x03, Buffer.from([unused]), bytes);
export const tagged = (number: number, content: Buffer): Buffer => der(0xa0 | number, content);

/** Not negative; a leading zero keeps the sign. */
export function integer(bytes: Buffer): Buffer {
  const [first = 0] = bytes;
  return der(0x02, first >= 0x80 || bytes.length === 0 ? Buffer.concat([Buffer.from([0]), bytes]) : bytes);
}

export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return der(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

function base128(value: number): number[] {
  const out = [value % 128];
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128)) {
    out.unshift(0x80 | (rest % 128));
  }
  return out;
}

/** UTCTime until 2049, GeneralizedTime after, as RFC 5280 wants it. */
export function time(date: Date): Buffer {
  const digits = `${date.toISOString().replaceAll(/[-:T]/g, '').slice(0, 14)}Z`;
  return date.getUTCFullYear() < 2050
    ? der(0x17, Buffer.from(digits.slice(2)))
    : der(0x18, Buffer.from(digits));
}
