/** How long a body is, from a head in which that can be said in one way only. */

import type { RequestHead, ResponseHead } from './head.ts';
import type { Headers } from './headers.ts';
import { HttpViolation } from './violation.ts';

export type Framing =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunked' }
  /** Responses only: until the connection ends. */
  | { readonly kind: 'until-close' };

export function requestFraming(head: RequestHead): Framing {
  return declared(head, 'framing_ambiguous') ?? { kind: 'none' };
}

export function responseFraming(head: ResponseHead, method: string): Framing {
  const { status } = head;
  const said = declared(head, 'bad_response');
  // These have no body, whatever their head says of the one that another method would get.
  if (method === 'HEAD' || status < 200 || status === 204 || status === 304) return { kind: 'none' };
  return said ?? { kind: 'until-close' };
}

function declared(
  { headers, version }: { readonly headers: Headers; readonly version: '1.0' | '1.1' },
  code: 'framing_ambiguous' | 'bad_response',
): Framing | undefined {
  const ambiguous = (message: string): HttpViolation => new HttpViolation(code, message);
  const lengths = headers.all('content-length');
  const codings = headers.all('transfer-encoding');
  if (codings.length > 0) {
    if (lengths.length > 0) throw ambiguous('both Content-Length and Transfer-Encoding are there');
    if (version === '1.0') throw ambiguous('HTTP/1.0 has no Transfer-Encoding');
    const [coding = ''] = codings;
    if (codings.length > 1 || coding.toLowerCase() !== 'chunked') {
      throw ambiguous('Transfer-Encoding is not exactly "chunked"');
    }
    return { kind: 'chunked' };
  }
  if (lengths.length === 0) return undefined;
  const [length = ''] = lengths;
  if (lengths.length > 1) throw ambiguous('Content-Length is there more than once');
  if (!/^(0|[1-9]\d{0,14})$/.test(length)) throw ambiguous('Content-Length is no plain number');
  return Number(length) === 0 ? { kind: 'none' } : { kind: 'length', bytes: Number(length) };
}
