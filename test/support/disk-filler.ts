/** A process that fills the disk below a state folder with output and events, and prints what it was told and what was refused. */

import { isSallyportError } from '../../src/protocol/errors.ts';
import { openStore } from '../../src/store/open-store.ts';
import { bytesAt } from './log-bytes.ts';
import { execIdOf, sandboxRecord } from './store-records.ts';

export interface Filled {
  readonly refusals: readonly string[];
  /** What its writer was told is stored, and what the log said. */
  readonly safe: number;
  readonly stored: number;
  /** The number of the last event. */
  readonly events: number;
  readonly eventRefusal: string;
}

const store = await openStore(process.argv[2] ?? '');
const box = sandboxRecord(1);
store.save(box);
const codeOf = (error: unknown): string => (isSallyportError(error) ? error.code : String(error));

const log = await store.openLog(box.id, execIdOf(1));
const refusals = new Set<string>();
let safe = 0;
for (let offset = 0; refusals.size === 0; offset += 4 * 10_000) {
  const writes = [0, 1, 2, 3].map(async (part) => {
    const at = offset + part * 10_000;
    await log.write('stdout', at, bytesAt('stdout', at, 10_000));
    safe = at + 10_000;
  });
  for (const { reason } of (await Promise.allSettled(writes)).filter((one) => one.status === 'rejected')) {
    refusals.add(codeOf(reason));
  }
}
try {
  await log.write('stdout', safe, Buffer.from('more'));
} catch (error) {
  refusals.add(codeOf(error));
}

let events = 0;
let eventRefusal = '';
while (eventRefusal === '') {
  try {
    const message = 'x'.repeat(1000);
    events = store.events.append({ type: 'sandbox.note', sandbox_id: box.id, code: 'x', message }).sequence;
  } catch (error) {
    eventRefusal = codeOf(error);
  }
}
const stored = log.stored.stdout;
await store.close();
const filled: Filled = { refusals: [...refusals], safe, stored, events, eventRefusal };
process.stdout.write(JSON.stringify(filled));
