import { describe, expect, it } from 'vitest';
import { listContainers } from '../../src/engines/docker/containers/list.ts';
import { isStale, sweepStale } from '../../src/engines/docker/sweep-stale.ts';
import { label, ownedLabels } from '../../src/protocol/labels.ts';
import { makeContainer, runContainer, testEngine } from '../support/engine.ts';

describe('sweepStale', () => {
  it('[A12] removes helpers that were created and never started, and nothing else', async () => {
    const engine = testEngine();
    const owner = 'sweep-test-owner';
    const mine = { labels: ownedLabels('sandbox', { [label.owner]: owner }) };
    const box = await makeContainer(engine, mine);
    const filler = await makeContainer(engine, { labels: ownedLabels('porter-filler') });
    const draft = await makeContainer(engine, { labels: ownedLabels('image-draft') });
    const running = await runContainer(engine, 'sleep 1000', mine);
    const stranger = await makeContainer(engine, {
      labels: ownedLabels('sandbox', { [label.owner]: 'another-owner' }),
    });
    // The engine's clock counts whole seconds: anything made up to now counts as older than a minus.
    expect(await sweepStale(engine.connection, -5_000)).toBeGreaterThanOrEqual(2);
    const left = (await listContainers(engine.connection, [label.test])).map(({ id }) => id);
    expect(left).toContain(running);
    expect(left).toContain(stranger);
    expect(left).toContain(box);
    expect(left).not.toContain(filler);
    expect(left).not.toContain(draft);
  });

  it('leaves alone what may still be started', () => {
    const made = { state: 'created', createdSeconds: 1000 };
    expect(isStale(made, 1_010_000, 120_000)).toBe(false);
    expect(isStale(made, 1_130_000, 120_000)).toBe(true);
    expect(isStale({ ...made, state: 'running' }, 9_999_000, 120_000)).toBe(false);
  });
});
