/**
 * Heads of HTTP/1.1 messages, read strictly: what two parsers could understand in two ways is refused. Node's own parser
 * is lenient in places where a server behind the gate may not be, and then the gate would judge another request than the one
 * that is answered.
 */

import { type HeaderField, Headers } from './headers.ts';
import { HttpViolation } from './violation.ts';

export const mostHeadBytes = 64 * 1024;
const mostLineBytes = 16 * 1024;
const mostFields = 128;

export interface RequestHead {
  readonly method: string;
  readonly target: string;
  readonly version: '1.0' | '1.1';
  readonly headers: Headers;
}

export interface ResponseHead {
  readonly status: number;
  readonly reason: string;
  readonly version: '1.0' | '1.1';
  readonly headers: Headers;
}

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Printable ASCII without the space: what RFC 3986 allows and a little more, nothing that ends a line or a word. */
const targetText = /^[\x21-\x7e]+$/;
/** A tab may stand in a value; no other control character may. */
const valueText = /^[\t\x20-\x7e\x80-\xff]*$/;

export const isTarget = (text: string): boolean => targetText.test(text);
export const isFieldValue = (text: string): boolean => valueText.test(text);

/** `bytes` is a whole head with the empty line at its end. */
export function parseRequestHead(bytes: Buffer): RequestHead {
  const [first = '', ...rest] = linesOf(bytes, 'bad_request');
  const parts = first.split(' ');
  const [method = '', target = '', protocol = ''] = parts;
  if (parts.length !== 3) throw bad('the request line has not three parts');
  if (!token.test(method) || method.length > 32) throw bad('the method is no token');
  if (!targetText.test(target)) throw bad('the target has characters that no URL has');
  const version = versionOf(protocol);
  if (version === undefined) throw bad('the protocol is neither HTTP/1.1 nor HTTP/1.0');
  return { method, target, version, headers: fieldsOf(rest, 'bad_request') };
}

export function parseResponseHead(bytes: Buffer): ResponseHead {
  const [first = '', ...rest] = linesOf(bytes, 'bad_response');
  const match = /^(HTTP\/1\.[01]) ([1-5]\d\d)(?: ([\t\x20-\x7e\x80-\xff]*))?$/.exec(first);
  const version = versionOf(match?.[1] ?? '');
  if (match === null || version === undefined) {
    throw new HttpViolation('bad_response', 'the status line of the answer is malformed');
  }
  const [, , status, reason = ''] = match;
  return { status: Number(status), reason, version, headers: fieldsOf(rest, 'bad_response') };
}

/** Field lines alone, as they come after the last chunk. */
export function parseTrailers(bytes: Buffer, code: 'bad_request' | 'bad_response'): Headers {
  return fieldsOf(linesOf(bytes, code), code);
}

function versionOf(protocol: string): '1.0' | '1.1' | undefined {
  if (protocol === 'HTTP/1.1') return '1.1';
  return protocol === 'HTTP/1.0' ? '1.0' : undefined;
}

function linesOf(bytes: Buffer, code: 'bad_request' | 'bad_response'): string[] {
  if (bytes.length > mostHeadBytes) {
    throw new HttpViolation('head_too_large', `the head is larger than ${mostHeadBytes} bytes`);
  }
  const lines = bytes.toString('latin1').split('\r\n');
  // A whole head ends with CRLF CRLF, which leaves two empty parts.
  if (lines.pop() !== '' || (lines.length > 0 && lines.pop() !== '')) {
    throw new HttpViolation(code, 'the head does not end with an empty line');
  }
  for (const line of lines) {
    if (/[\r\n]/.test(line)) throw new HttpViolation(code, 'a line ends with CR or LF alone');
    if (line === '') throw new HttpViolation(code, 'there is an empty line within the head');
    if (line.length > mostLineBytes) {
      throw new HttpViolation('head_too_large', `a line of the head is longer than ${mostLineBytes} bytes`);
    }
  }
  return lines;
}

function fieldsOf(lines: readonly string[], code: 'bad_request' | 'bad_response'): Headers {
  if (lines.length > mostFields) {
    throw new HttpViolation('head_too_large', `there are more than ${mostFields} header fields`);
  }
  return new Headers(lines.map((line) => fieldOf(line, code)));
}

function fieldOf(line: string, code: 'bad_request' | 'bad_response'): HeaderField {
  if (/^[ \t]/.test(line)) throw new HttpViolation(code, 'a header field is folded over lines');
  const colon = line.indexOf(':');
  const name = line.slice(0, Math.max(colon, 0));
  // This also refuses a space before the colon.
  if (!token.test(name)) throw new HttpViolation(code, 'the name of a header field is no token');
  const value = line.slice(colon + 1).replace(/^[ \t]+|[ \t]+$/g, '');
  if (!valueText.test(value)) {
    throw new HttpViolation(code, 'the value of a header field has control characters');
  }
  return [name, value];
}

const bad = (message: string): HttpViolation => new HttpViolation('bad_request', message);

export function writeHead(firstLine: string, headers: Headers): Buffer {
  const lines = headers.fields.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return Buffer.from(`${firstLine}\r\n${lines}\r\n`, 'latin1');
}
