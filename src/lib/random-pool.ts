/** Random bytes in small portions, of which a call to the system's source gives many at once. */

import { randomFillSync } from 'node:crypto';

const pool = Buffer.alloc(4096);
let used = pool.length;

/** For ids. A secret is made by itself. */
export function randomPortion(bytes: number): Buffer {
  if (used + bytes > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const portion = Buffer.from(pool.subarray(used, used + bytes));
  used += bytes;
  return portion;
}
