import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import type { ConnectionParts } from '../box-connections.ts';
import type { ServedBox } from '../box-egress.ts';
import { GateThread } from './gate-thread.ts';

/** Learns one value with the first sandbox, reports each value that it is sent, and ends when rules change. */
const entry = `
import { parentPort } from 'node:worker_threads';
parentPort.on('message', (message) => {
  if (message.kind === 'box') {
    const known = { host: 'api.test', port: 443, secret: 'ci', value: 'REAL-value-0123456789' };
    parentPort.postMessage({ kind: 'value', known });
  }
  if (message.kind === 'value') {
    parentPort.postMessage({ kind: 'report', box: 1, what: 'know', error: message.known.value });
  }
  if (message.kind === 'probe') parentPort.postMessage({ kind: 'answer', call: message.call, closed: 0 });
  if (message.kind === 'change') process.exit();
});
`;

it('[R7] a thread that takes the place of one that ended masks the values that it knew', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-gate-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'entry.mjs');
  writeFileSync(file, entry);
  const reported: string[] = [];
  const thread = new GateThread({ entry: pathToFileURL(file), data: {}, report: () => {} });
  onTestFinished(() => thread.close());
  const report = (_what: string, error: unknown): void => void reported.push(String(error));
  const parts: Partial<ConnectionParts> = { egress: {}, report };
  const served = { client: { id: 'sbx_1', name: 'box' }, keys: undefined };
  const box = thread.open(parts as ConnectionParts, served as unknown as ServedBox);
  await box.change({});
  expect(reported).toEqual([]);
  await box.probing(async () => {
    await expect.poll(() => reported).toEqual(['Error: REAL-value-0123456789']);
    await box.change({});
  });
});
