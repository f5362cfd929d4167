import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeOnce } from './packed-system.mjs';

let folder;
let archive;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-packed-'));
  archive = join(folder, 'system.tar');
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const made = () => readFileSync(join(folder, 'made'), 'utf8').length;
const making = (unfinished) => ['sh', '-c', `printf x >>'${folder}/made'; echo system >'${unfinished}'`];

describe('[N1] the archive of a machine', () => {
  it('is made once by two that want it, and again after a day', async () => {
    expect(await Promise.all([makeOnce(archive, making), makeOnce(archive, making)])).toEqual([0, 0]);
    expect([readFileSync(archive, 'utf8'), made()]).toEqual(['system\n', 1]);
    const yesterday = Date.now() / 1000 - 25 * 3600;
    utimesSync(archive, yesterday, yesterday);
    expect(await makeOnce(archive, making)).toBe(0);
    expect(made()).toBe(2);
  });

  it('is made where a killed process left its lock, also an empty one', async () => {
    writeFileSync(`${archive}.lock`, '');
    const holder = spawn('flock', [`${archive}.lock`, 'sh', '-c', 'echo locked; exec sleep 1000'], {
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    });
    await once(holder.stdout, 'data');
    const waiting = makeOnce(archive, making);
    process.kill(-holder.pid, 'SIGKILL');
    expect(await waiting).toBe(0);
    expect(made()).toBe(1);
  });

  it('is not there when the command failed half-way', async () => {
    const failing = (unfinished) => ['sh', '-c', `echo half >'${unfinished}'; exit 4`];
    expect(await makeOnce(archive, failing)).toBe(4);
    expect(await makeOnce(archive, making)).toBe(0);
    expect(readFileSync(archive, 'utf8')).toBe('system\n');
  });
});
