/** Output as an answer carries it: text where it is text, else base64. */

import type { CapturedView } from '../protocol/views.ts';
import type { Captured } from './ports.ts';

/** Per stream, head and tail together (G5). */
export const captureLimitBytes = 256 * 1024;

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function capturedView({ data, truncated, totalBytes }: Captured): CapturedView {
  const text = decode(data);
  return text === undefined
    ? { encoding: 'base64', data: data.toString('base64'), truncated, total_bytes: totalBytes }
    : { encoding: 'utf8', data: text, truncated, total_bytes: totalBytes };
}

function decode(data: Buffer): string | undefined {
  try {
    return strictUtf8.decode(data);
  } catch {
    return undefined;
  }
}
