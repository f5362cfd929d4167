import {
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { bundleProgram } from '../../test/support/child-program.ts';
import { temporaryFolder } from '../../test/support/little-engine.ts';
import { startWriters, type Writer } from '../../test/support/shared-writers.ts';
import { withFileLock, withFileLockSync } from './file-lock.ts';

const crowd = 10;
const dead = (mark: string): string => `${process.pid} ${mark.repeat(16)} ${'0'.repeat(16)}`;

async function holders(program: string, folder: string): Promise<readonly Writer[]> {
  const plan = { kind: 'hold', folder, who: '', count: 1 } as const;
  return await startWriters(program, Array(crowd).fill(plan));
}

/** All at once. Returns the only one that got the lock. */
async function race(takers: readonly Writer[]): Promise<Writer> {
  for (const taker of takers) taker.go();
  const answers = await Promise.all(takers.map((taker) => taker.said()));
  for (const answer of answers) expect(answer).toMatch(/^(taken|held by \d+)$/);
  const [winner, ...others] = takers.filter((_, number) => answers[number] === 'taken');
  if (winner === undefined) throw new Error(`nobody took the lock: ${answers.join(', ')}`);
  expect(others).toEqual([]);
  return winner;
}

describe('a lock across processes', () => {
  it('is free again after the action, also after one that fails', async () => {
    const folder = temporaryFolder();
    const path = join(folder, 'lock');
    const isLink = (): boolean => lstatSync(path).isSymbolicLink();
    expect(withFileLockSync(path, isLink)).toBe(true);
    expect(await withFileLock(path, async () => isLink())).toBe(true);
    const fail = (): never => {
      throw new RangeError('of the action');
    };
    expect(() => withFileLockSync(path, fail)).toThrow(RangeError);
    await expect(withFileLock(path, async () => fail())).rejects.toThrow(RangeError);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('that is held fails a taker at its limit, with the pid of the holder', async () => {
    const path = join(temporaryFolder(), 'lock');
    await withFileLock(path, async () => {
      const busy = { name: 'FileLockError', path, pid: process.pid };
      expect(() => withFileLockSync(path, () => {}, 20)).toThrow(expect.objectContaining(busy));
      expect(() => withFileLockSync(path, () => {}, 0)).toThrow(/lock was not free within 0 ms/);
      await expect(withFileLock(path, async () => {}, 20)).rejects.toMatchObject(busy);
    });
  });

  it('lets asynchronous takers of one process wait for each other', async () => {
    const path = join(temporaryFolder(), 'lock');
    let inside = 0;
    const action = async (): Promise<number> => {
      const seen = ++inside;
      await new Promise(setImmediate);
      inside--;
      return seen;
    };
    const seen = await Promise.all(Array.from({ length: 20 }, () => withFileLock(path, action)));
    expect(seen).toEqual(Array(20).fill(1));
  });

  it('in a folder that is not there is an error that names it', () => {
    const path = join(temporaryFolder(), 'nowhere', 'lock');
    expect(() => withFileLockSync(path, () => {})).toThrow(expect.objectContaining({ path, pid: undefined }));
  });

  it('is not freed by a holder whose lock was removed and taken by another one', () => {
    const path = join(temporaryFolder(), 'lock');
    const other = withFileLockSync(path, () => {
      const target = readlinkSync(path).replace(/ [0-9a-f]{16} /, ` ${'a'.repeat(16)} `);
      rmSync(path);
      symlinkSync(target, path);
      return target;
    });
    expect(readlinkSync(path)).toBe(other);
    expect(() => withFileLockSync(path, () => {}, 0)).toThrow(expect.objectContaining({ pid: process.pid }));
  });

  it.each([
    ['a regular file', (path: string) => writeFileSync(path, 'text')],
    ['a link that names no holder', (path: string) => symlinkSync('somewhere', path)],
    ['a dead process, whose pid another one has', (path: string) => symlinkSync(dead('a'), path)],
  ])('is taken over from %s', (_what, make) => {
    const folder = temporaryFolder();
    const path = join(folder, 'lock');
    make(path);
    expect(withFileLockSync(path, () => lstatSync(path).isSymbolicLink(), 0)).toBe(true);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('is taken over also when a taker was killed while it did just that, and nothing of that one stays', () => {
    const folder = temporaryFolder();
    const path = join(folder, 'lock');
    symlinkSync(dead('a'), path);
    symlinkSync(dead('b'), `${path}.${'a'.repeat(16)}`);
    symlinkSync(dead('c'), `${path}.${'c'.repeat(16)}.draft`);
    expect(withFileLockSync(path, () => 'taken', 0)).toBe('taken');
    expect(readdirSync(folder)).toEqual([]);
  });

  it(`is taken by exactly one of ${crowd} processes, and by exactly one after that one is killed`, async () => {
    const { outfile } = await bundleProgram('./shared-writer.ts');
    const folder = temporaryFolder();
    const [first, second] = [await holders(outfile, folder), await holders(outfile, folder)];
    const busy = (holder: Writer) => expect.objectContaining({ pid: holder.pid });
    const winner = await race(first);
    expect(() => withFileLockSync(join(folder, 'lock'), () => {}, 0)).toThrow(busy(winner));
    await winner.kill();
    const successor = await race(second);
    expect(() => withFileLockSync(join(folder, 'lock'), () => {}, 0)).toThrow(busy(successor));
    expect(readdirSync(folder)).toEqual(['lock']);
    await successor.kill();
    expect(withFileLockSync(join(folder, 'lock'), () => 'taken', 0)).toBe('taken');
    expect(readdirSync(folder)).toEqual([]);
  });

  it('keeps processes apart while some of them are killed', async () => {
    const { outfile } = await bundleProgram('./shared-writer.ts');
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'counter'), '0'.repeat(8));
    const plan = { kind: 'counter', folder, who: '' } as const;
    const killed = 6;
    const lasting = await startWriters(outfile, Array(2).fill({ ...plan, count: 400 }));
    const victims = await startWriters(outfile, Array(killed).fill(plan));
    for (const writer of [...lasting, ...victims]) writer.go();
    const lines = await Promise.all([
      ...lasting.map((writer) => writer.lines()),
      ...victims.map((writer) => writer.lines(1 + Math.floor(Math.random() * 200))),
    ]);
    const acknowledged = lines.reduce((sum, { length }) => sum + length, 0);
    const counted = Number(readFileSync(join(folder, 'counter'), 'utf8'));
    // A process may be killed after it counted and before it says so.
    expect(counted).toBeGreaterThanOrEqual(acknowledged);
    expect(counted).toBeLessThanOrEqual(acknowledged + killed);
    expect(withFileLockSync(join(folder, 'lock'), () => 'taken', 0)).toBe('taken');
    expect(readdirSync(folder)).toEqual(['counter']);
  });
});
