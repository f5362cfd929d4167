/** Output whose every byte says where it belongs, so that one that is lost, doubled or misplaced is seen. */

import type { Channel } from '../../src/porter/output-sink.ts';

const salt: Readonly<Record<Channel, number>> = { stdout: 7, stderr: 101 };

export function bytesAt(channel: Channel, offset: number, length: number): Buffer {
  const data = Buffer.allocUnsafe(length);
  for (let place = 0; place < length; place++) {
    const at = offset + place;
    data[place] = (at * 31 + (at >> 8) * 17 + salt[channel]) & 0xff;
  }
  return data;
}
