import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { bundleProgram } from '../../test/support/child-program.ts';
import type { Filled } from '../../test/support/disk-filler.ts';
import { temporaryFolder } from '../../test/support/little-engine.ts';
import { bytesAt } from '../../test/support/log-bytes.ts';
import { asRoot, when } from '../../test/support/selection.ts';
import { execIdOf, sandboxRecord } from '../../test/support/store-records.ts';
import { openStore } from './open-store.ts';

/** Fills the disk; `blocks` bounds the size of each file instead, in units of 512 bytes. */
async function fill(folder: string, blocks: number | 'unlimited'): Promise<Filled> {
  const { outfile } = await bundleProgram('./disk-filler.ts');
  const command = 'ulimit -f "$1"; shift; exec "$@"';
  const args = ['-c', command, 'sh', String(blocks), process.execPath, outfile, folder];
  const child = spawn('sh', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  return JSON.parse(await text(child.stdout)) as Filled;
}

/** Nothing that was promised is missing, and nothing half is left. */
async function expectWhole(folder: string, filled: Filled): Promise<void> {
  expect(filled.refusals).toEqual(['output_lost']);
  expect(filled.eventRefusal).toBe('disk_full');
  expect(filled.stored).toBeGreaterThanOrEqual(filled.safe);
  expect(filled.safe).toBeGreaterThan(0);
  const store = await openStore(folder);
  onTestFinished(() => store.close());
  const log = await store.openLog(sandboxRecord(1).id, execIdOf(1));
  expect(log.stored.stdout).toBe(filled.stored);
  let position = 0;
  for await (const piece of log.read()) {
    if (!('data' in piece)) throw new Error('nothing was dropped');
    expect(piece.data.equals(bytesAt('stdout', position, piece.data.length))).toBe(true);
    position += piece.data.length;
  }
  expect(position).toBe(filled.stored);
  expect(store.events.sequence).toBe(filled.events);
  for (const name of readdirSync(join(folder, 'events')).filter((file) => file.endsWith('.jsonl'))) {
    const content = readFileSync(join(folder, 'events', name), 'utf8');
    expect(content === '' || content.endsWith('\n')).toBe(true);
  }
}

describe('a store whose disk is full', () => {
  it('refuses output and events with a typed error, and keeps what it took', {
    timeout: 60_000,
  }, async () => {
    const folder = join(temporaryFolder(), 'state');
    await expectWhole(folder, await fill(folder, 555));
  });

  when(asRoot).describe('as root', () => {
    it('does so on a disk that is really full', { timeout: 60_000 }, async () => {
      const disk = join(temporaryFolder(), 'disk');
      mkdirSync(disk);
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m,mode=700', 'tmpfs', disk]);
      onTestFinished(() => {
        execFileSync('umount', [disk]);
      });
      const folder = join(disk, 'state');
      const filled = await fill(folder, 'unlimited');
      await expectWhole(folder, filled);
    });
  });
});
