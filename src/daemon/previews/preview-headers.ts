/** Headers of a preview's requests and answers: what of them passes in each direction. Name and value in turn, as Node has them. Pure. */

import type { IncomingMessage } from 'node:http';
import { hopHeaders } from '../../lib/hop-headers.ts';
import { previewCookie, withoutPreviewCookie } from './preview-access.ts';

/** `isKept` gets names in lower case. */
export function headersInward(raw: readonly string[], isKept: (name: string) => boolean): string[] {
  return pairs(raw).flatMap(([name, value]) => {
    if (!isKept(name.toLowerCase())) return [];
    if (name.toLowerCase() !== 'cookie') return [name, value];
    const cookie = withoutPreviewCookie(value);
    return cookie === '' ? [] : [name, cookie];
  });
}

/** SECURITY: a cookie of one sandbox is for its own host, and none of them takes the place of ours. */
export function headersOutward({
  rawHeaders,
  headers,
}: Pick<IncomingMessage, 'rawHeaders' | 'headers'>): string[] {
  const hop = hopHeaders((headers.connection ?? '').split(','));
  return pairs(rawHeaders).flatMap(([name, value]) => {
    const lower = name.toLowerCase();
    if (hop.has(lower)) return [];
    if (lower !== 'set-cookie') return [name, value];
    if (isOurCookie(value)) return [];
    return [name, value.replaceAll(/;\s*domain\s*=[^;]*/gi, '')];
  });
}

/**
 * As browsers read it: blanks around the name do not count. One without a name is sent back as its value alone, which may look
 * like ours.
 */
function isOurCookie(value: string): boolean {
  const [pair = ''] = value.split(';', 1);
  const at = pair.indexOf('=');
  const name = at < 0 ? '' : pair.slice(0, at).trim();
  const content = pair.slice(at + 1).trim();
  return name === previewCookie || (name === '' && content.split('=', 1)[0]?.trim() === previewCookie);
}

function pairs(raw: readonly string[]): readonly (readonly [string, string])[] {
  return raw.flatMap((name, at) => (at % 2 === 0 ? [[name, raw[at + 1] ?? ''] as const] : []));
}
