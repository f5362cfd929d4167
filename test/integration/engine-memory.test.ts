import { describe, expect, it } from 'vitest';
import { waitForExit } from '../../src/engines/docker/containers/wait.ts';
import { listImages } from '../../src/engines/docker/images/list.ts';
import { removeImage } from '../../src/engines/docker/images/remove.ts';
import { label } from '../../src/protocol/labels.ts';
import { runChild } from '../support/child-program.ts';
import { runContainer, testEngine } from '../support/engine.ts';
import { full } from '../support/requires.ts';
import type { SlowReading } from '../support/slow-reader.ts';

const engine = testEngine();
const allowedGrowth = 64 * 2 ** 20;

function report(what: string, { bytes, rssGrowthBytes, durationMs }: SlowReading): void {
  const mb = (count: number): string => (count / 1e6).toFixed(1);
  console.info(`${what}: ${mb(bytes)} MB in ${durationMs} ms, memory grew by ${mb(rssGrowthBytes)} MB`);
}

describe('a slow reader', () => {
  it('of 300 MB of archive slows the engine down instead of filling memory', async () => {
    const { connection, endpoint } = engine;
    const id = await runContainer(engine, 'head -c 300000000 /dev/zero > /tmp/big');
    expect(await waitForExit(connection, id, { timeoutMs: 60_000 })).toBe(0);
    const args = [endpoint, 'archive', id, '/tmp/big'];
    const reading = await runChild<SlowReading>('./slow-reader.ts', { args, nodeOptions: ['--expose-gc'] });
    report('archive', reading);
    expect(reading.bytes).toBeGreaterThan(300_000_000);
    expect(reading.rssGrowthBytes).toBeLessThan(allowedGrowth);
  }, 180_000);

  it(`of ${full ? 300 : 100} MB of build output slows the build down instead of filling memory`, async () => {
    const { connection, endpoint, image } = engine;
    const bytes = (full ? 300 : 100) * 1_000_000;
    const mark = `${engine.labels()[label.test]}-memory`;
    const run = `RUN head -c ${bytes} /dev/zero | tr '\\0' x | fold -w 500`;
    const args = [endpoint, 'build', `FROM ${image}\n${run}\n`, JSON.stringify({ mark })];
    try {
      const reading = await runChild<SlowReading>('./slow-reader.ts', { args, nodeOptions: ['--expose-gc'] });
      report('build', reading);
      expect(reading.bytes).toBeGreaterThan(bytes);
      expect(reading.rssGrowthBytes).toBeLessThan(allowedGrowth);
    } finally {
      for (const { id } of await listImages(connection, [`mark=${mark}`])) await removeImage(connection, id);
    }
  }, 600_000);
});
