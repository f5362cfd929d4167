import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { temporaryFolder } from '../../test/support/little-engine.ts';
import { asRoot, when } from '../../test/support/selection.ts';
import { execIdOf, execRecord, sandboxIdOf, sandboxRecord } from '../../test/support/store-records.ts';
import type { ExecId, SandboxId } from '../protocol/ids.ts';
import { openStore, type StoreOptions } from './open-store.ts';

async function store(folder: string, options?: StoreOptions) {
  const opened = await openStore(folder, options);
  onTestFinished(() => opened.close());
  return opened;
}

/** Every path below a folder with its permissions. */
function modes(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true }).map((entry) => {
    const path = join(entry.parentPath, entry.name);
    return `${entry.isDirectory() ? 'folder' : 'file'} ${(statSync(path).mode & 0o777).toString(8)}`;
  });
}

const audit = {
  sandbox: 'box',
  exec: 'ex-1',
  argv: ['true'],
  where: 'sandbox',
  reason: 'asked',
  outcome: 'exited 0',
  durationMs: 12,
};

describe('openStore', () => {
  it('[A16] gives back what another daemon wrote: sandboxes, execs, output, events', async () => {
    const folder = temporaryFolder();
    const first = await openStore(folder);
    const box = sandboxRecord(1);
    first.save(sandboxRecord(1, { state: 'PENDING' }));
    first.save(box);
    first.saveExec(execRecord(box.id, 1));
    first.saveExec(execRecord(box.id, 2));
    const log = await first.openLog(box.id, execIdOf(1));
    await log.write('stdout', 0, Buffer.from('out'));
    await log.write('stderr', 0, Buffer.from('err'));
    first.saveExec(execRecord(box.id, 1, { state: 'exited', exitCode: 3 }));
    first.events.append({ type: 'sandbox.note', sandbox_id: box.id, code: 'x', message: 'y' });
    await first.close();

    const second = await store(folder);
    expect(await second.load()).toEqual([box]);
    expect(await second.loadExecs(box.id)).toEqual([
      execRecord(box.id, 1, { state: 'exited', exitCode: 3 }),
      execRecord(box.id, 2),
    ]);
    const again = await second.openLog(box.id, execIdOf(1));
    expect(again.stored).toEqual({ stdout: 3, stderr: 3 });
    expect((await again.capture('output', 100)).data.toString()).toBe('outerr');
    expect(second.events.sequence).toBe(1);
  });

  it('[N5] gives a record without a disk limit the usual one', async () => {
    const opened = await store(temporaryFolder());
    const box = sandboxRecord(1);
    const { diskBytes: _d, ...limits } = box.plan.limits;
    const diskLimit = async () => (await opened.load())[0]?.plan.limits.diskBytes;
    opened.save({ ...box, plan: { ...box.plan, limits: limits as typeof box.plan.limits } });
    expect(await diskLimit()).toBe(20 * 2 ** 30);
    opened.save({ ...box, plan: { ...box.plan, limits: { ...limits, diskBytes: 2 ** 30 } } });
    expect(await diskLimit()).toBe(2 ** 30);
  });

  it('understands a record of before there were copies', async () => {
    const folder = temporaryFolder();
    const first = await openStore(folder);
    const box = sandboxRecord(1);
    const { copies: _c, shadows: _s, sockets: _k, ...former } = box.plan;
    const copy = { source: '/project', target: '/workspace' };
    first.save({ ...box, plan: { ...former, copy } as unknown as typeof box.plan });
    await first.close();
    const [loaded] = await (await store(folder)).load();
    expect(loaded?.plan).toMatchObject({
      copies: [{ ...copy, kind: 'directory', excludes: { patterns: [], from: [] }, isWorkspace: true }],
      shadows: [],
      sockets: [],
    });
  });

  it('keeps everything to its user: folders 0700, files 0600', async () => {
    const folder = temporaryFolder();
    const opened = await store(folder);
    const box = sandboxRecord(1);
    opened.save(box);
    opened.saveExec(execRecord(box.id, 1));
    await (await opened.openLog(box.id, execIdOf(1))).write('stdout', 0, Buffer.from('x'));
    opened.events.append({ type: 'sandbox.note', sandbox_id: box.id, code: 'x', message: 'y' });
    opened.audit(audit);
    const found = modes(folder);
    expect(found.length).toBeGreaterThan(10);
    expect(new Set(found)).toEqual(new Set(['folder 700', 'file 600']));
  });

  it('refuses a folder that is open to others, and takes it once it is closed', async () => {
    const folder = join(temporaryFolder(), 'state');
    mkdirSync(folder, { mode: 0o700 });
    chmodSync(folder, 0o750);
    await expect(openStore(folder)).rejects.toMatchObject({ code: 'state_unsafe', details: { mode: '750' } });
    expect(readdirSync(folder)).toEqual([]);
    chmodSync(folder, 0o700);
    await store(folder);
  });

  when(asRoot).describe('as root', () => {
    it('refuses a folder of another user', async () => {
      const folder = join(temporaryFolder(), 'state');
      mkdirSync(folder, { mode: 0o700 });
      chownSync(folder, 12345, 12345);
      await expect(openStore(folder)).rejects.toMatchObject({
        code: 'state_unsafe',
        details: { uid: 12345 },
      });
    });
  });

  it('keeps two folders apart', async () => {
    const [one, other] = [temporaryFolder(), temporaryFolder()];
    const [first, second] = [await store(one), await store(other)];
    first.save(sandboxRecord(1));
    second.save(sandboxRecord(1, { name: 'other' }));
    await second.remove(sandboxIdOf(1));
    expect(await first.load()).toEqual([sandboxRecord(1)]);
    expect(await second.load()).toEqual([]);
  });

  it('removes a sandbox with all that is kept of it, also when a crash cuts the removal off', async () => {
    const folder = temporaryFolder();
    const first = await store(folder);
    const box = sandboxRecord(1);
    first.save(box);
    first.saveExec(execRecord(box.id, 1));
    const log = await first.openLog(box.id, execIdOf(1));
    await log.write('stdout', 0, Buffer.from('x'));
    const reader = log.read({ follow: true });
    await first.remove(box.id);
    await first.remove(box.id);
    for await (const _ of reader) expect.unreachable('the reader of a removed log has nothing to read');
    await expect(log.write('stdout', 1, Buffer.from('y'))).rejects.toMatchObject({ code: 'output_lost' });
    expect(readdirSync(join(folder, 'sandboxes'))).toEqual([]);

    mkdirSync(join(folder, 'sandboxes', `${box.id}.removed`, 'execs'), { recursive: true });
    expect(await first.load()).toEqual([]);
    expect(readdirSync(join(folder, 'sandboxes'))).toEqual([]);
  });

  it('moves a record that it does not understand aside, says so, and loads the others', async () => {
    const folder = temporaryFolder();
    const broken: string[] = [];
    const opened = await store(folder, { onBroken: ({ path, why }) => broken.push(`${path}: ${why}`) });
    for (const seed of [1, 2, 3, 4, 5]) opened.save(sandboxRecord(seed));
    const file = (seed: number): string => join(folder, 'sandboxes', sandboxIdOf(seed), 'sandbox.json');
    writeFileSync(file(1), '{"id": "sb-');
    writeFileSync(file(2), JSON.stringify({ ...sandboxRecord(2), state: 'HAPPY' }));
    writeFileSync(file(3), JSON.stringify(sandboxRecord(4)));
    writeFileSync(file(4), '');
    expect(await opened.load()).toEqual([sandboxRecord(5)]);
    expect(broken).toHaveLength(4);
    expect(readFileSync(`${file(1)}.broken`, 'utf8')).toBe('{"id": "sb-');
    expect(await opened.load()).toEqual([sandboxRecord(5)]);
    expect(broken).toHaveLength(4);
  });

  it('never makes a path of what is no id', async () => {
    const opened = await store(temporaryFolder());
    const outside = '../../outside' as SandboxId;
    expect(() => opened.save(sandboxRecord(1, { id: outside }))).toThrow(RangeError);
    await expect(opened.remove(outside)).rejects.toThrow(RangeError);
    await expect(opened.openLog(sandboxIdOf(1), '../x' as ExecId)).rejects.toThrow(RangeError);
  });

  it('never gives a number twice that a record remembers, even if all events are lost', async () => {
    const folder = temporaryFolder();
    const opened = await store(folder);
    opened.save(sandboxRecord(1, { sequence: 41 }));
    await opened.load();
    const note = { type: 'sandbox.note', sandbox_id: 'x', code: 'x', message: 'y' } as const;
    expect(opened.events.append(note).sequence).toBe(42);
  });

  it('forgets the oldest execs with their output, and never one that runs', async () => {
    const folder = temporaryFolder();
    const dropped: string[] = [];
    const first = await openStore(folder, { onExecDropped: (_, exec) => dropped.push(exec) });
    const box = sandboxRecord(1);
    first.save(box);
    first.saveExec(execRecord(box.id, 0));
    for (const seed of [1, 2]) {
      const log = await first.openLog(box.id, execIdOf(seed));
      first.saveExec(execRecord(box.id, seed));
      await log.write('stdout', 0, Buffer.from('x'));
      await log.end();
    }
    for (let seed = 1; seed <= 1001; seed++) first.saveExec(execRecord(box.id, seed, { state: 'exited' }));
    await first.close();
    expect(dropped).toContain(execIdOf(1));
    expect(dropped).not.toContain(execIdOf(0));
    const second = await store(folder);
    const kept = await second.loadExecs(box.id);
    expect(kept).toHaveLength(751);
    expect(kept[0]).toEqual(execRecord(box.id, 0));
    expect(kept.at(-1)?.id).toBe(execIdOf(1001));
    expect(existsSync(join(folder, 'sandboxes', box.id, 'execs', execIdOf(1)))).toBe(false);
  });

  it('removes output that no exec is remembered for', async () => {
    const folder = temporaryFolder();
    const opened = await store(folder);
    const box = sandboxRecord(1);
    opened.save(box);
    opened.saveExec(execRecord(box.id, 1));
    for (const seed of [1, 2]) {
      mkdirSync(join(folder, 'sandboxes', box.id, 'execs', execIdOf(seed)), { recursive: true });
    }
    await opened.loadExecs(box.id);
    expect(readdirSync(join(folder, 'sandboxes', box.id, 'execs'))).toEqual([execIdOf(1)]);
  });

  it('makes nothing on disk for an exec without output', async () => {
    const folder = temporaryFolder();
    const opened = await store(folder);
    const box = sandboxRecord(1);
    opened.save(box);
    const log = await opened.openLog(box.id, execIdOf(1));
    expect(await log.capture('stdout', 10)).toEqual({
      data: Buffer.alloc(0),
      truncated: false,
      totalBytes: 0,
    });
    await log.end();
    expect(existsSync(join(folder, 'sandboxes', box.id, 'execs'))).toBe(false);
  });

  it('opens the log of an exec that ended as one to which nothing comes, and one object for all who ask', async () => {
    const folder = temporaryFolder();
    const opened = await store(folder);
    const box = sandboxRecord(1);
    opened.save(box);
    opened.saveExec(execRecord(box.id, 1, { state: 'lost' }));
    opened.saveExec(execRecord(box.id, 2));
    const over = await opened.openLog(box.id, execIdOf(1));
    for await (const _ of over.read({ follow: true })) expect.unreachable('there is no output');
    const logs = await Promise.all([1, 2, 3].map(() => opened.openLog(box.id, execIdOf(2))));
    expect(new Set(logs).size).toBe(1);
  });

  it('[C7] writes a line for every execution', async () => {
    const folder = temporaryFolder();
    const opened = await store(folder);
    opened.audit(audit);
    const line = JSON.parse(readFileSync(join(folder, 'audit', 'audit.jsonl'), 'utf8')) as Record<
      string,
      unknown
    >;
    const { durationMs, ...rest } = audit;
    expect(line).toMatchObject({ at: expect.any(String), type: 'exec', ...rest, duration_ms: durationMs });
  });
});
