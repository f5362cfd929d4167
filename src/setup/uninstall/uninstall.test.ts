import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { SallyportError } from '../../protocol/errors.ts';
import { removeIfThere } from './here.ts';
import { carryOut, type Step } from './plan.ts';
import { removalLine, removeArchiveProgram } from './program-files.ts';
import { listStateFiles, removeStateFiles } from './state-files.ts';

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'sallyport-uninstall-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

describe('a sandbox that an uninstallation has listed', () => {
  const options = { force: false };
  const failing = (error: SallyportError) => ({ remove: () => Promise.reject(error) });

  it('[N23] may be gone when its turn comes', async () => {
    const gone = new SallyportError('sandbox_not_found', 'there is no sandbox x');
    await expect(removeIfThere(failing(gone), 'x', options)).resolves.toBeUndefined();
    const stuck = new SallyportError('engine_timeout', 'it is stuck');
    await expect(removeIfThere(failing(stuck), 'x', options)).rejects.toBe(stuck);
  });
});

describe('the steps of an uninstallation', () => {
  const done: string[] = [];
  const step = (name: string, onlyAfterSuccess = false): Step => ({
    thing: { kind: 'thing', name },
    onlyAfterSuccess,
    run: async () => {
      if (name === 'stuck') throw new SallyportError('engine_timeout', 'it is stuck');
      done.push(name);
    },
  });
  const steps = [step('first'), step('stuck'), step('second'), step('last', true)];

  it('[N23] go on after one that failed, but for those that another attempt needs', async () => {
    done.length = 0;
    const { removed, failed } = await carryOut(steps, { force: false, onStep: () => {} });
    expect(done).toEqual(['first', 'second']);
    expect(removed.map(({ name }) => name)).toEqual(done);
    expect(failed.map(({ name, why }) => `${name}: ${why}`)).toEqual([
      expect.stringMatching(/^stuck: it is stuck \(The engine may be stuck/),
      'last: it is needed to try again, as something before it failed',
    ]);
  });

  it('[N23] are all done where that is forced', async () => {
    done.length = 0;
    await carryOut(steps, { force: true, onStep: () => {} });
    expect(done).toEqual(['first', 'second', 'last']);
  });
});

describe('the state folder', () => {
  it("[N23] loses only what has a name of Sallyport's, and a link in it leads nowhere", async () => {
    const [state, other] = [folder(), folder()];
    writeFileSync(join(other, 'precious'), '');
    symlinkSync(other, join(state, 'sandboxes'));
    const gone = ['daemon.log.1', 'daemon.lock.0a.draft', 'audit.lock', 'secrets.json.lock.0a'];
    for (const name of [...gone, 'secrets.json', 'notes', 'motors']) writeFileSync(join(state, name), '');
    mkdirSync(join(state, 'audit'));
    mkdirSync(join(state, 'guard-copies/1-a-b/folder'), { recursive: true });
    const uid = process.getuid?.() ?? -1;
    expect(await listStateFiles(state, { purge: false })).toEqual({
      removes: expect.arrayContaining([...gone, 'sandboxes', 'guard-copies']),
      keeps: expect.arrayContaining(['audit', 'secrets.json']),
      foreign: expect.arrayContaining(['motors', 'notes']),
    });
    await removeStateFiles(state, { purge: false, uid });
    expect(readdirSync(state).sort()).toEqual(['audit', 'motors', 'notes', 'secrets.json']);
    await removeStateFiles(state, { purge: true, uid });
    expect(readdirSync(state).sort()).toEqual(['motors', 'notes']);
    expect(readdirSync(other)).toEqual(['precious']);
  });

  it('[N23] of another user is left alone', async () => {
    await expect(removeStateFiles(folder(), { purge: true, uid: 4_000_000 })).rejects.toMatchObject({
      code: 'state_unsafe',
    });
  });
});

describe('the program', () => {
  it('[N23] goes with the links that lead to it, and leaves others of that name', async () => {
    const prefix = folder();
    mkdirSync(join(prefix, 'lib/sallyport/package'), { recursive: true });
    mkdirSync(join(prefix, 'bin'));
    symlinkSync('../lib/sallyport/package/dist/cli/sally.cjs', join(prefix, 'bin/sally'));
    writeFileSync(join(prefix, 'bin/sallyport'), 'of somebody else');
    await removeArchiveProgram(prefix);
    expect(readdirSync(join(prefix, 'bin'))).toEqual(['sallyport']);
    expect(readdirSync(join(prefix, 'lib'))).toEqual([]);
    await removeArchiveProgram(prefix);
  });

  it('[N23] is removed by npm where npm installed it', () => {
    expect(removalLine({ kind: 'npm-global', prefix: '/opt/n' })).toBe('npm rm -g --prefix /opt/n sallyport');
    expect(removalLine({ kind: 'npm-local', folder: '/app' })).toBe('npm rm --prefix /app sallyport');
    expect(removalLine({ kind: 'archive', prefix: '/usr/local' })).toBeUndefined();
  });
});
