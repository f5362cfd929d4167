/** [R5] Prune: what goes, what stays, and why, on an engine that others use at the same time. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createNetwork } from '../../src/engines/docker/networks/create.ts';
import { listNetworks } from '../../src/engines/docker/networks/list.ts';
import { removeNetwork } from '../../src/engines/docker/networks/remove.ts';
import { createVolume } from '../../src/engines/docker/volumes/create.ts';
import { findVolume } from '../../src/engines/docker/volumes/inspect.ts';
import { removeVolume } from '../../src/engines/docker/volumes/remove.ts';
import { label, type OwnedKind, ownedLabels } from '../../src/protocol/labels.ts';
import type { PruneView } from '../../src/protocol/views.ts';
import { daemonHome, type TestDaemon } from '../support/daemon-home.ts';
import { makeSandbox } from '../support/daemon-world.ts';
import { testEngine } from '../support/engine.ts';

/** Images are a cache that all daemons of an engine share, so what a neighbour makes may be among them. */
async function prune({ client }: TestDaemon, body: object = {}): Promise<PruneView> {
  const view = await client.json<PruneView>('POST', '/v1/prune', { body });
  return { ...view, things: view.things.filter(({ kind }) => kind !== 'image') };
}

const short = ({ things }: PruneView): readonly string[] =>
  things.map(({ kind, name, outcome }) => `${kind} ${name} ${outcome}`).sort();

describe('[R5] prune', () => {
  it('takes what was stopped for long enough, and tells how much it had written', async () => {
    const daemon = await (await daemonHome()).start();
    const stopped = await makeSandbox(daemon, { name: 'stopped' });
    await makeSandbox(daemon, { name: 'running' });
    await stopped.sh('head -c 3000000 /dev/zero > ~/large', { check: true });
    await stopped.stop();
    expect(short(await prune(daemon, { dry_run: true }))).toEqual([]);
    expect(short(await prune(daemon, { older_than_ms: 3_600_000 }))).toEqual([]);
    const would = await prune(daemon, { dry_run: true, older_than_ms: 1 });
    expect(short(would)).toEqual(['sandbox stopped would_be_removed']);
    expect(would.things[0]?.size_bytes).toBeGreaterThanOrEqual(3_000_000);
    expect(would.freed_bytes).toBeGreaterThanOrEqual(3_000_000);
    expect(await stopped.refresh()).toMatchObject({ state: 'STOPPED' });
    const done = await prune(daemon, { older_than_ms: 1 });
    expect(done.things).toMatchObject([
      { name: 'stopped', why: expect.stringContaining('stopped at'), outcome: 'removed' },
    ]);
    await expect(stopped.refresh()).rejects.toMatchObject({ code: 'sandbox_not_found' });
    expect(short(await prune(daemon, { older_than_ms: 1 }))).toEqual([]);
  });

  it('keeps changes that exist nowhere else, and names them', async () => {
    const daemon = await (await daemonHome()).start();
    const folder = await mkdtemp(join(tmpdir(), 'sallyport-prune-'));
    await writeFile(join(folder, 'a.txt'), 'one\n');
    const workspace = { path: folder, mode: 'copy' as const };
    const changed = await makeSandbox(daemon, { name: 'changed', workspace });
    await makeSandbox(daemon, { name: 'same', workspace });
    await changed.files.write(`${changed.info.workdir}/a.txt`, 'two\n');
    await rm(folder, { recursive: true });
    const rows = (outcome: string): readonly string[] => ['sandbox changed kept', `sandbox same ${outcome}`];
    expect(short(await prune(daemon, { dry_run: true }))).toEqual(rows('would_be_removed'));
    const { things } = await prune(daemon);
    expect(short({ things, freed_bytes: 0 })).toEqual(rows('removed'));
    const note = things.find(({ name }) => name === 'changed')?.note;
    expect(note).toMatch(/a\.txt.*sally rm --force changed/);
    expect(await changed.refresh()).toMatchObject({ state: 'READY' });
    await changed.remove({ force: true });
  });

  it('takes networks and volumes of its own whose sandbox is gone, and nothing of anybody else', async () => {
    const { connection } = testEngine();
    const home = await daemonHome();
    const daemon = await home.start();
    const box = await makeSandbox(daemon, { name: 'here' });
    const unique = home.owner.slice(0, 8);
    const volume = async (name: string, owner: string, id: string): Promise<string> => {
      // No kind of ours is a volume of one sandbox today: what carries both labels is one all the same.
      const labels = ownedLabels('sandbox' satisfies OwnedKind, { [label.owner]: owner, [label.id]: id });
      await createVolume(connection, { name: `${name}-${unique}`, labels });
      onTestFinished(() => removeVolume(connection, `${name}-${unique}`));
      return `${name}-${unique}`;
    };
    const orphan = await volume('orphan', home.owner, 'sb-gone');
    const used = await volume('used', home.owner, box.id);
    const foreign = await volume('foreign', 'somebody-else', 'sb-gone');
    const network = await createNetwork(connection, {
      name: `net-${unique}`,
      subnet: '198.19.255.240/28',
      labels: ownedLabels('network', { [label.owner]: home.owner, [label.id]: 'sb-gone' }),
      driverOptions: {},
    });
    onTestFinished(() => removeNetwork(connection, network));
    const named = async (): Promise<readonly (string | undefined)[]> =>
      await Promise.all(
        [orphan, used, foreign].map(async (name) => (await findVolume(connection, name))?.name),
      );
    expect(short(await prune(daemon, { dry_run: true }))).toEqual([
      `network net-${unique} would_be_removed`,
      `volume ${orphan} would_be_removed`,
    ]);
    expect(await named()).toEqual([orphan, used, foreign]);
    expect(short(await prune(daemon))).toEqual([`network net-${unique} removed`, `volume ${orphan} removed`]);
    expect(await named()).toEqual([undefined, used, foreign]);
    expect(await listNetworks(connection, [`${label.owner}=${home.owner}`])).toEqual([]);
    expect(await box.refresh()).toMatchObject({ state: 'READY' });
  });
});
