import { existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { bundleProgram } from '../../test/support/child-program.ts';
import { temporaryFolder } from '../../test/support/little-engine.ts';
import { startWriters } from '../../test/support/shared-writers.ts';
import { withFileLock } from '../lib/file-lock.ts';
import type { AuditLineView } from '../protocol/audit.ts';
import { AuditFile, auditRotation } from './audit.ts';
import { readAudit, verifyAudit } from './audit-reader.ts';

const small = { maxBytes: 1200, keep: 3 };
const entry = (number: number) => ({
  type: 'exec' as const,
  sandbox: `box-${number % 2}`,
  argv: ['echo', String(number)],
  reason: '',
  outcome: 'exit 0',
});

/** A state folder with so many lines, by a writer that is gone. */
function written(count: number, limits = { maxBytes: 2 ** 20, keep: 3 }): string {
  const stateDir = temporaryFolder();
  const file = new AuditFile(stateDir, limits);
  for (let number = 1; number <= count; number++) file.append(entry(number));
  file.close();
  return stateDir;
}

const log = (stateDir: string, age = ''): string => join(stateDir, 'audit', `audit.jsonl${age}`);
const head = (stateDir: string): string => join(stateDir, 'audit-head');

function edit(path: string, change: (lines: string[]) => string[]): void {
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  writeFileSync(path, `${change(lines).join('\n')}\n`);
}

async function problems(stateDir: string): Promise<readonly string[]> {
  const verdict = await verifyAudit(stateDir);
  expect(verdict.ok).toBe(verdict.problems.length === 0);
  return verdict.problems.map(({ place, text }) => (place === undefined ? text : `${place} ${text}`));
}

async function linesOf(stateDir: string): Promise<readonly AuditLineView[]> {
  const found: AuditLineView[] = [];
  for await (const line of readAudit(stateDir)) found.push(line);
  return found;
}

const numbers = async (stateDir: string): Promise<readonly number[]> =>
  (await linesOf(stateDir)).map(({ n }) => n);

describe('[C7] the audit log', () => {
  it('is whole as it was written, over rotations and many writers', async () => {
    const stateDir = temporaryFolder();
    let file = new AuditFile(stateDir, small);
    onTestFinished(() => file.close());
    for (let number = 1; number <= 40; number++) {
      file.append(entry(number));
      expect(await problems(stateDir)).toEqual([]);
      if (number % 3 !== 0) continue;
      file.close();
      file = new AuditFile(stateDir, small);
    }
    expect(readdirSync(join(stateDir, 'audit')).sort()).toEqual([
      'audit.jsonl',
      'audit.jsonl.1',
      'audit.jsonl.2',
    ]);
    const kept = await numbers(stateDir);
    expect(kept.at(-1)).toBe(40);
    expect(kept[0]).toBeGreaterThan(1);
    expect(kept).toEqual(kept.map((_, place) => (kept[0] ?? 0) + place));
  });

  it('is empty and whole before anything ran', async () => {
    expect(await verifyAudit(temporaryFolder())).toEqual({ ok: true, lines: 0, problems: [] });
    expect(await problems(written(0))).toEqual([]);
  });

  it.each<[string, (stateDir: string) => void, RegExp]>([
    [
      'an edited line',
      (dir) => edit(log(dir), (lines) => lines.map((line) => line.replace('"5"', '"6"'))),
      /:6 line 5 before it was changed/,
    ],
    [
      'an edit of the last line',
      (dir) => edit(log(dir), (lines) => lines.map((line) => line.replace('"10"', '"11"'))),
      /line 10 is not the one that was written last/,
    ],
    [
      'a removed line',
      (dir) => edit(log(dir), (lines) => lines.filter((line) => !line.startsWith('{"n":4,'))),
      /:4 lines 4 to 4 are missing before it/,
    ],
    ['a removed start', (dir) => edit(log(dir), (lines) => lines.slice(3)), /:1 lines 1 to 3 are missing/],
    ['a cut', (dir) => edit(log(dir), (lines) => lines.slice(0, 7)), /lines 8 to 10 are missing at the end/],
    [
      'two lines in another order',
      (dir) => edit(log(dir), ([a = '', b = '', ...rest]) => [b, a, ...rest]),
      /lines 1 to 1 are missing|comes after/,
    ],
    ['a line of nobody', (dir) => edit(log(dir), (lines) => [...lines, '{"n":11}']), /:11 is no line/],
    ['a removed file', (dir) => rmSync(log(dir)), /lines 1 to 10 are missing at the end/],
    ['the removed folder', (dir) => rmSync(join(dir, 'audit'), { recursive: true }), /lines 1 to 10 are/],
    ['a removed head', (dir) => rmSync(head(dir)), /audit-head\) is missing/],
  ])('shows %s, and still does when it was written to again', async (_what, damage, expected) => {
    const stateDir = written(10);
    expect(await problems(stateDir)).toEqual([]);
    damage(stateDir);
    expect((await problems(stateDir)).join('\n')).toMatch(expected);
    const file = new AuditFile(stateDir);
    file.append(entry(99));
    file.close();
    expect(await problems(stateDir)).not.toEqual([]);
  });

  it.each(['.1', '.2'])('shows that the file %s was removed', async (age) => {
    const stateDir = written(14, small);
    expect(await problems(stateDir)).toEqual([]);
    expect(existsSync(log(stateDir, '.2'))).toBe(true);
    rmSync(log(stateDir, age));
    expect((await problems(stateDir)).join('\n')).toMatch(/lines \d+ to \d+ are missing/);
  });

  it('goes on after a crash in a line, and after one before the head followed', async () => {
    const stateDir = written(5);
    const before = readFileSync(head(stateDir));
    const torn = new AuditFile(stateDir);
    torn.append(entry(6));
    torn.append(entry(7));
    torn.close();
    writeFileSync(head(stateDir), before);
    expect(await problems(stateDir)).toEqual([]);
    new AuditFile(stateDir).close();
    const size = readFileSync(log(stateDir)).length;
    writeFileSync(log(stateDir), '{"n":8,"prev":"', { flag: 'a' });
    expect(await problems(stateDir)).toEqual([]);
    const file = new AuditFile(stateDir);
    expect(readFileSync(log(stateDir))).toHaveLength(size);
    file.append(entry(8));
    file.close();
    expect(await problems(stateDir)).toEqual([]);
    expect(await numbers(stateDir)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  it('goes on after a crash right after its first lines, before any head followed', async () => {
    const stateDir = temporaryFolder();
    const file = new AuditFile(stateDir);
    const fresh = readFileSync(head(stateDir));
    file.append(entry(1));
    file.append(entry(2));
    file.close();
    writeFileSync(head(stateDir), fresh);
    expect(await problems(stateDir)).toEqual([]);
    new AuditFile(stateDir).close();
    expect(await problems(stateDir)).toEqual([]);
    expect(await numbers(stateDir)).toEqual([1, 2]);
  });

  it('goes on after a crash in the middle of a rotation', async () => {
    const stateDir = written(14, small);
    // The newest was moved, and the next one not made yet.
    const lines = readFileSync(log(stateDir), 'utf8');
    rmSync(log(stateDir, '.2'));
    writeFileSync(log(stateDir, '.2'), readFileSync(log(stateDir, '.1')));
    writeFileSync(log(stateDir, '.1'), lines);
    truncateSync(log(stateDir));
    const [oldest = 0] = await numbers(stateDir);
    const kept = readFileSync(head(stateDir), 'utf8');
    writeFileSync(head(stateDir), kept.replace(/\d{15}\n$/, `${String(oldest).padStart(15, '0')}\n`));
    expect(await problems(stateDir)).toEqual([]);
    const file = new AuditFile(stateDir, small);
    file.append(entry(15));
    file.close();
    expect(await problems(stateDir)).toEqual([]);
    expect((await numbers(stateDir)).at(-1)).toBe(15);
  });

  it('is compared with a head that was noted before', async () => {
    const stateDir = written(3);
    const { head: noted } = await verifyAudit(stateDir);
    const file = new AuditFile(stateDir);
    file.append(entry(4));
    file.close();
    expect((await verifyAudit(stateDir, noted?.hash)).ok).toBe(true);
    const forged = written(4);
    expect((await verifyAudit(forged)).ok).toBe(true);
    expect(await verifyAudit(forged, noted?.hash)).toMatchObject({
      ok: false,
      problems: [{ text: `no line has the hash ${noted?.hash}` }],
    });
  });
});

describe('[C7] the audit log of several processes', () => {
  const plan = (folder: string, who: string) => ({ kind: 'audit', folder, who, count: 200 }) as const;
  const writers = ['a', 'b', 'c', 'd'];

  it('is one chain with every line of every process', async () => {
    const { outfile } = await bundleProgram('./shared-writer.ts');
    const stateDir = temporaryFolder();
    const children = await startWriters(
      outfile,
      writers.map((who) => plan(stateDir, who)),
    );
    for (const child of children) child.go();
    await Promise.all(children.map((child) => child.lines()));
    expect(await verifyAudit(stateDir)).toMatchObject({ ok: true, lines: writers.length * 200 });
    const lines = await linesOf(stateDir);
    for (const who of writers) {
      const own = lines.filter(({ sandbox }) => sandbox === who);
      expect(own.map(({ reason }) => Number(reason))).toEqual(Array.from({ length: 200 }, (_, at) => at + 1));
    }
    expect(readFileSync(head(stateDir), 'utf8')).toMatch(/^0+800 /);
    expect(readdirSync(stateDir).sort()).toEqual(['audit', 'audit-head']);
  });

  it('is one chain over rotations', async () => {
    const { outfile } = await bundleProgram('./shared-writer.ts');
    const stateDir = temporaryFolder();
    const children = await startWriters(
      outfile,
      writers.map((who) => ({ ...plan(stateDir, who), rotation: small })),
    );
    for (const child of children) child.go();
    await Promise.all(children.map((child) => child.lines()));
    expect(await problems(stateDir)).toEqual([]);
    expect((await numbers(stateDir)).at(-1)).toBe(writers.length * 200);
  });

  it.each([
    ['without rotations', undefined],
    ['over rotations', small],
  ])('is whole after one of them was killed at any point, %s', async (_how, rotation) => {
    const { outfile } = await bundleProgram('./shared-writer.ts');
    const stateDir = temporaryFolder();
    const limits = rotation === undefined ? {} : { rotation };
    const lasting = await startWriters(outfile, [{ ...plan(stateDir, 'lasting'), ...limits }]);
    const victims = await startWriters(
      outfile,
      Array.from({ length: 8 }, (_, at) => ({ kind: 'audit', folder: stateDir, who: `v${at}`, ...limits })),
    );
    for (const child of [...lasting, ...victims]) child.go();
    const lines = await Promise.all([
      ...lasting.map((child) => child.lines()),
      ...victims.map((child) => child.lines(1 + Math.floor(Math.random() * 100))),
    ]);
    const last = new AuditFile(stateDir, rotation);
    last.append(entry(1));
    last.close();
    expect(await problems(stateDir)).toEqual([]);
    const kept = await numbers(stateDir);
    const acknowledged = lines.reduce((sum, { length }) => sum + length, 0);
    // Each victim may have written one more than it could say.
    expect(kept.at(-1)).toBeGreaterThan(acknowledged);
    expect(kept.at(-1)).toBeLessThanOrEqual(acknowledged + 1 + victims.length);
    if (rotation === undefined) expect(kept).toEqual(kept.map((_, at) => at + 1));
    expect(readdirSync(stateDir).sort()).toEqual(['audit', 'audit-head']);
  });

  it('goes on after the lines of another writer, over any number of rotations', async () => {
    const stateDir = temporaryFolder();
    const [one, two] = [new AuditFile(stateDir, small), new AuditFile(stateDir, small)];
    let number = 0;
    for (let ahead = 0; ahead < 20; ahead++) {
      one.append(entry(++number));
      for (let line = 0; line < ahead; line++) two.append(entry(++number));
      expect(await problems(stateDir)).toEqual([]);
    }
    two.close();
    one.close();
    expect(await problems(stateDir)).toEqual([]);
    expect((await numbers(stateDir)).at(-1)).toBe(number);
  });

  it('goes on after more lines of another writer than it reads one by one', async () => {
    const stateDir = temporaryFolder();
    const [one, two] = [new AuditFile(stateDir), new AuditFile(stateDir)];
    one.append(entry(1));
    const long = { ...entry(2), reason: 'x'.repeat(300_000) };
    for (let line = 0; line < 5; line++) two.append(long);
    one.append(entry(7));
    two.close();
    one.close();
    expect(await problems(stateDir)).toEqual([]);
    expect(await numbers(stateDir)).toEqual([1, 2, 3, 4, 5, 6, 7]);
  });

  it('cuts off what a killed writer left of a line', async () => {
    const stateDir = temporaryFolder();
    const file = new AuditFile(stateDir);
    onTestFinished(() => file.close());
    file.append(entry(1));
    writeFileSync(log(stateDir), '{"n":2,"prev":"', { flag: 'a' });
    file.append(entry(2));
    expect(await problems(stateDir)).toEqual([]);
    expect(await numbers(stateDir)).toEqual([1, 2]);
  });

  it.each<[string, (stateDir: string) => void]>([
    ['a cut', (dir) => truncateSync(log(dir), 10)],
    ['a removed file', (dir) => rmSync(log(dir))],
    ['the removed folder', (dir) => rmSync(join(dir, 'audit'), { recursive: true })],
    ['a line of nobody', (dir) => writeFileSync(log(dir), '{"n":3}\n', { flag: 'a' })],
    ['another log', (dir) => edit(log(dir), (lines) => lines.map((line) => line.replace('"1"', '"one"')))],
  ])(
    'has %s on record when an open writer goes on, once for each that knows better',
    async (_what, damage) => {
      const stateDir = temporaryFolder();
      const [one, two] = [new AuditFile(stateDir), new AuditFile(stateDir)];
      one.append(entry(1));
      two.append(entry(2));
      damage(stateDir);
      for (let number = 3; number < 9; number++) (number % 2 === 0 ? one : two).append(entry(number));
      two.close();
      one.close();
      const records = (await linesOf(stateDir)).filter(({ type }) => type === 'audit');
      expect(records.length).toBeGreaterThanOrEqual(1);
      expect(records.length).toBeLessThanOrEqual(2);
      expect(await problems(stateDir)).not.toEqual([]);
    },
  );

  it('has lines on record that another writer wrote and that are gone', async () => {
    const stateDir = temporaryFolder();
    const [one, two] = [new AuditFile(stateDir), new AuditFile(stateDir)];
    one.append(entry(1));
    const before = readFileSync(log(stateDir));
    two.append(entry(2));
    two.append(entry(3));
    two.close();
    truncateSync(log(stateDir), before.length);
    one.append(entry(4));
    one.close();
    expect((await problems(stateDir)).join('\n')).toMatch(/the log ended with line 2, its head says 3/);
  });

  it('refuses a line at the limit of the lock, and names who holds it', async () => {
    const stateDir = temporaryFolder();
    const file = new AuditFile(stateDir, auditRotation, 20);
    onTestFinished(() => file.close());
    await withFileLock(join(stateDir, 'audit.lock'), async () => {
      expect(() => file.append(entry(1))).toThrow(
        expect.objectContaining({
          code: 'state_failed',
          details: { path: join(stateDir, 'audit.lock'), pid: process.pid },
        }),
      );
    });
    file.append(entry(1));
    expect(await numbers(stateDir)).toEqual([1]);
  });
});
