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
import { prune as pruneBySdk } from '../../src/sdk/prune.ts';
import { Sandbox } from '../../src/sdk/sandbox.ts';
import { daemonHome, type TestDaemon } from '../support/daemon-home.ts';
import { belongings, makeSandbox } from '../support/daemon-world.ts';
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

  it('of one agent takes only sandboxes of that agent, and refuses an agent that nobody knows', async () => {
    const home = await daemonHome();
    const daemon = await home.start();
    const { connection } = testEngine();
    const gone = await mkdtemp(join(tmpdir(), 'sallyport-prune-'));
    const workspace = { path: gone, mode: 'copy' as const };
    const ofMine = { labels: { 'sallyport.agent': 'mine' }, workspace };
    await makeSandbox(daemon, { name: 'by-label', ...ofMine });
    const changed = await makeSandbox(daemon, { name: 'changed', ...ofMine });
    await makeSandbox(daemon, { name: 'by-image', agent: 'mine', workspace });
    await makeSandbox(daemon, { name: 'needed', labels: ofMine.labels });
    await makeSandbox(daemon, { name: 'of-claude', labels: { 'sallyport.agent': 'claude' }, workspace });
    await makeSandbox(daemon, { name: 'of-nobody', workspace });
    await changed.files.write(`${changed.info.workdir}/new.txt`, 'new\n');
    const orphan = `orphan-${home.owner.slice(0, 8)}`;
    const labels = ownedLabels('sandbox' satisfies OwnedKind, {
      [label.owner]: home.owner,
      [label.id]: 'sb-gone',
    });
    await createVolume(connection, { name: orphan, labels });
    onTestFinished(() => removeVolume(connection, orphan));
    await rm(gone, { recursive: true });
    const { client } = daemon;
    for (const agent of ['min', 'Mine', 'toString'])
      await expect(pruneBySdk({ agent }, { client })).rejects.toMatchObject({
        code: 'agent_unknown',
        details: { agent, known: expect.arrayContaining(['claude', 'codex', 'mine', 'opencode']) },
      });
    await expect(pruneBySdk({ agent: '' }, { client })).rejects.toMatchObject({ code: 'request_invalid' });
    // Known by its definition, without a sandbox.
    expect((await pruneBySdk({ agent: 'opencode' }, { client })).things).toEqual([]);
    const rows = (outcome: string): readonly string[] => [
      `sandbox by-image ${outcome}`,
      `sandbox by-label ${outcome}`,
      'sandbox changed kept',
    ];
    expect(short(await prune(daemon, { agent: 'mine', dry_run: true }))).toEqual(rows('would_be_removed'));
    const done = await pruneBySdk({ agent: 'mine' }, { client });
    expect(done.things.map(({ kind, name, outcome }) => `${kind} ${name} ${outcome}`).sort()).toEqual(
      rows('removed'),
    );
    expect(done.freedBytes).toBeGreaterThanOrEqual(0);
    expect((await Sandbox.list({ client })).map(({ name }) => name).sort()).toEqual([
      'changed',
      'needed',
      'of-claude',
      'of-nobody',
    ]);
    expect(await findVolume(connection, orphan)).toBeDefined();
    await changed.remove({ force: true });
  });

  it('of one agent takes the services and the network of its sandboxes with them', async () => {
    const home = await daemonHome();
    const daemon = await home.start();
    const gone = await mkdtemp(join(tmpdir(), 'sallyport-prune-'));
    const workspace = { path: gone, mode: 'copy' as const };
    const labels = { 'sallyport.agent': 'mine' };
    const service = { name: 'db', image: testEngine().image, command: ['sleep', '1000'] };
    const before = await belongings(home);
    await makeSandbox(daemon, { labels, workspace, requiredServices: [service] });
    const made = await belongings(home);
    expect([made.services.length, made.networks.length]).toEqual([1, 1]);
    await rm(gone, { recursive: true });
    const { things } = await prune(daemon, { agent: 'mine' });
    expect(things).toMatchObject([{ kind: 'sandbox', outcome: 'removed' }]);
    expect(await belongings(home)).toEqual(before);
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
