/** Random and damaged hosts against the gate's one parser: what it takes is canonical, and means the same to a URL. */

import { parseAuthority, parseBareHost, parseHost } from '../../src/policy/egress/host.ts';
import type { FuzzOptions } from './host.ts';
import { Random } from './random.ts';

const pieces = [
  'x',
  'com',
  'xn--',
  'bcher-kva',
  '.',
  '..',
  '-',
  '127',
  '0x7f',
  '0177',
  '1',
  '[',
  ']',
  '::',
  ':',
  'ffff',
  '%',
  '%25',
  '@',
  '*',
  '\0',
  '\r\n',
  'ａ',
  '。',
  '\u200b',
  'K',
  '_',
  '/',
  '\\',
  ' ',
  'a'.repeat(63),
  'localhost',
  ':443',
  ':0',
];

export async function fuzzHosts({ seed, cases, progress }: FuzzOptions): Promise<void> {
  const random = new Random(seed);
  for (let done = 0; done < cases; done++) {
    const text = Array.from({ length: 1 + random.below(8) }, () => pieces[random.below(pieces.length)]).join(
      '',
    );
    for (const read of [parseHost(text), parseBareHost(text), parseAuthority(text, 443)]) {
      if ('problem' in read) continue;
      const written = read.host.includes(':') ? `[${read.host}]` : read.host;
      const again = parseHost(written);
      const isSame = !('problem' in again) && again.host === read.host && again.isAddress === read.isAddress;
      if (!isSame || new URL(`http://${written}/`).hostname !== written) {
        throw new Error(`case ${done}: ${JSON.stringify(text)} was read as ${JSON.stringify(read)}`);
      }
    }
    if (done % 100_000 === 99_999) progress?.(done + 1);
  }
}
