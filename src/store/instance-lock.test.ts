import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it, onTestFinished } from 'vitest';
import { bundleProgram } from '../../test/support/child-program.ts';
import { temporaryFolder } from '../../test/support/little-engine.ts';
import type { LockAnswer } from '../../test/support/lock-taker.ts';
import { processStart } from '../lib/process-start.ts';
import { takeLock } from './instance-lock.ts';

interface Taker {
  readonly child: ChildProcessWithoutNullStreams;
  /** The next line that it says. */
  said(): Promise<string>;
  tell(): void;
  kill(): Promise<void>;
}

async function taker(program: string, folder: string): Promise<Taker> {
  const child = spawn(process.execPath, [program, folder]);
  child.stdin.on('error', () => {});
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const said = async (): Promise<string> => (await lines.next()).value ?? 'nothing';
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  };
  onTestFinished(kill);
  expect(await said()).toBe('ready');
  return { child, said, tell: () => child.stdin.write('go\n'), kill };
}

/** All at once. Returns who got it. */
async function race(takers: readonly Taker[]): Promise<Taker[]> {
  for (const one of takers) one.tell();
  const answers = await Promise.all(takers.map((one) => one.said()));
  for (const answer of answers) expect(answer).toMatch(/^(taken|held by \d+)$/);
  const won: LockAnswer = 'taken';
  return takers.filter((_, number) => answers[number] === won);
}

const crowd = 20;

describe('the lock of a state folder', () => {
  it(`is taken by exactly one of ${crowd} processes, and by exactly one after that one is killed`, {
    timeout: 180_000,
  }, async () => {
    const { outfile } = await bundleProgram('./lock-taker.ts');
    const folder = join(temporaryFolder(), 'state');
    const start = (): Promise<Taker[]> =>
      Promise.all(Array.from({ length: crowd }, () => taker(outfile, folder)));
    const first = await start();
    const second = await start();
    const [winner, ...others] = await race(first);
    expect(others).toEqual([]);
    if (!winner) throw new Error('nobody took a lock that was free');
    expect(await takeLock(folder)).toEqual({ heldBy: winner.child.pid });
    await winner.kill();
    const successors = await race(second);
    expect(successors).toHaveLength(1);
    expect(await takeLock(folder)).toEqual({ heldBy: successors[0]?.child.pid });
    expect(readdirSync(folder)).toEqual(['daemon.lock']);
  });

  it('is free again when it is released, and a second release frees nobody else', async () => {
    const folder = join(temporaryFolder(), 'state');
    const first = await takeLock(folder);
    if (!('release' in first)) throw new Error('nobody else is here');
    expect(await takeLock(folder)).toEqual({ heldBy: process.pid });
    first.release();
    expect(existsSync(join(folder, 'daemon.lock'))).toBe(false);
    const second = await takeLock(folder);
    first.release();
    expect(await takeLock(folder)).toEqual({ heldBy: process.pid });
    if ('release' in second) second.release();
  });

  it('is taken over from a process whose pid is used by another one now', async () => {
    const folder = join(temporaryFolder(), 'state');
    const own = await takeLock(folder);
    if ('release' in own) own.release();
    const lock = (start: string): void =>
      writeFileSync(
        join(folder, 'daemon.lock'),
        JSON.stringify({ pid: process.ppid, start, mark: '0123456789abcdef' }),
      );
    lock(processStart(process.ppid) ?? '');
    expect(await takeLock(folder)).toEqual({ heldBy: process.ppid });
    lock('another time');
    expect(await takeLock(folder)).toHaveProperty('release');
  });

  it.each(['', '{', '{"pid":1}', 'x'.repeat(1000)])(
    'is taken over from what is no lock: %j',
    async (text) => {
      const folder = join(temporaryFolder(), 'state');
      const own = await takeLock(folder);
      if ('release' in own) own.release();
      writeFileSync(join(folder, 'daemon.lock'), text);
      expect(await takeLock(folder)).toHaveProperty('release');
      expect(await takeLock(folder)).toEqual({ heldBy: process.pid });
      expect(readdirSync(folder)).toEqual(['daemon.lock']);
    },
  );

  it('is taken over also when a taker was killed while it did just that', async () => {
    const folder = join(temporaryFolder(), 'state');
    const own = await takeLock(folder);
    if ('release' in own) own.release();
    const dead = (mark: string): string => JSON.stringify({ pid: process.pid, start: 'long ago', mark });
    writeFileSync(join(folder, 'daemon.lock'), dead('a'.repeat(16)));
    writeFileSync(join(folder, `daemon.lock.${'a'.repeat(16)}`), dead('b'.repeat(16)));
    writeFileSync(join(folder, `daemon.lock.${'c'.repeat(16)}.draft`), dead('c'.repeat(16)));
    expect(await takeLock(folder)).toHaveProperty('release');
    expect(readdirSync(folder)).toEqual(['daemon.lock']);
  });
});
