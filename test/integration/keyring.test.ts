/** [R8] Values of secrets in a real keyring: kept, read, moved, removed; and what happens when it is locked, hangs or is gone. */

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { SecretBinding } from '../../src/protocol/secrets.ts';
import { systemKeyring } from '../../src/store/keyring.ts';
import { openSecrets, type Secrets } from '../../src/store/secrets.ts';
import { sally } from '../support/cli.ts';
import { type KeyringPrograms, keyringPrograms, sessionBus } from '../support/keyring.ts';
import { ownHome } from '../support/own-home.ts';
import { canPackageImages } from '../support/packaged-image.ts';
import { requirement } from '../support/requires.ts';

const isLinux = requirement('Linux', process.platform === 'linux');

const value = 'the-real-value-of-the-keyring-0123';
const other = 'another-value-of-the-keyring-4567';
const binding: SecretBinding = {
  hosts: ['api.test'],
  port: 443,
  headers: ['authorization'],
  env: ['TOKEN'],
  prefix: '',
};

let programs: KeyringPrograms;
let root = '';

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'sallyport-keyring-'));
  programs = await keyringPrograms(root);
});

afterAll(() => {
  rmSync(root, { recursive: true, force: true });
});

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'sallyport-keyring-state-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** As a daemon that was started in the session of that bus. */
function inSession(address: string): void {
  vi.stubEnv('PATH', `${programs.bin}:${process.env['PATH']}`);
  vi.stubEnv('DBUS_SESSION_BUS_ADDRESS', address);
  onTestFinished(() => void vi.unstubAllEnvs());
}

const open = (stateDir: string): Secrets => openSecrets(stateDir, () => new Date(), systemKeyring('linux'));
const fileOf = (stateDir: string): string => readFileSync(join(stateDir, 'secrets.json'), 'utf8');
const gone = 'unix:path=/nonexistent/bus';

describe.runIf(isLinux && canPackageImages())('[R8] secrets in a keyring', () => {
  it('have their values there and nowhere else, are moved only when that is said, and leave nothing', async () => {
    const bus = await sessionBus(programs, { unlocked: true });
    inSession(bus.address);
    const stateDir = folder();
    const secrets = open(stateDir);
    expect(await secrets.set('ci', { binding, value })).toMatchObject({ store: 'keyring' });
    expect(await open(stateDir).value('ci')).toBe(value);
    expect(await secrets.set('ci', { value: other })).toMatchObject({ store: 'keyring' });
    expect([await secrets.value('ci'), await open(stateDir).value('ci')]).toEqual([other, other]);
    expect(await secrets.set('ci', { budget: 3 })).toMatchObject({ store: 'keyring', budget: 3 });
    expect((await secrets.check('ci')).state).toBe('valid');
    expect(fileOf(stateDir)).not.toMatch(new RegExp(`${value}|${other}`));

    await secrets.set('plain', { binding, value, store: 'file' });
    // What is in the file stays there, although a keyring answers.
    expect(await secrets.set('plain', { value: other })).toMatchObject({ store: 'file' });
    expect(fileOf(stateDir)).toContain(other);
    expect(await secrets.set('plain', { store: 'keyring' })).toMatchObject({ store: 'keyring' });
    expect(fileOf(stateDir)).not.toContain(other);
    expect(await secrets.value('plain')).toBe(other);
    expect(await secrets.set('plain', { store: 'file' })).not.toHaveProperty('note');
    expect(await secrets.value('plain')).toBe(other);

    const items = [...(await programs.said()).matchAll(/^store .* item (\w+)$/gm)].map(
      ([, item = '']) => item,
    );
    expect(items).toHaveLength(3);
    await secrets.remove('ci');
    const keyring = systemKeyring('linux');
    for (const item of items) await expect(keyring?.read('x', item)).rejects.toThrow(/has it no more/);
    expect(await programs.said()).not.toMatch(new RegExp(`${value}|${other}`));
  });

  it('that is locked or gone are an error that says what to do, and never come from or go to the file', async () => {
    const stateDir = folder();
    const before = await sessionBus(programs, { unlocked: true });
    inSession(before.address);
    await open(stateDir).set('ci', { binding, value });
    await before.end();
    const file = fileOf(stateDir);
    const locked = await sessionBus(programs, { unlocked: false });
    for (const [address, why] of [
      [locked.address, /is locked/],
      [gone, /is not there/],
    ] as const) {
      vi.stubEnv('DBUS_SESSION_BUS_ADDRESS', address);
      const secrets = open(stateDir);
      const failure = await secrets.value('ci').catch((error: unknown) => error);
      expect(failure).toMatchObject({
        code: 'keyring_unavailable',
        message: expect.stringMatching(why),
        advice: expect.stringContaining('--store file'),
      });
      expect(await secrets.check('ci')).toMatchObject({ state: 'failing' });
      expect(secrets.list()).toMatchObject([{ name: 'ci', store: 'keyring' }]);
      for (const change of [
        { value: other },
        { store: 'file' },
        { value: other, store: 'keyring' },
      ] as const) {
        await expect(secrets.set('ci', change)).rejects.toMatchObject({ code: 'keyring_unavailable' });
      }
      expect(fileOf(stateDir)).toBe(file);
    }
    // Where there is none a new one goes to the file; where one is locked that is for the user to say.
    const secrets = open(stateDir);
    expect(await secrets.set('new', { binding, value: other })).toMatchObject({ store: 'file' });
    vi.stubEnv('DBUS_SESSION_BUS_ADDRESS', locked.address);
    await expect(secrets.set('newer', { binding, value: other })).rejects.toMatchObject({
      code: 'keyring_unavailable',
    });
    expect(await secrets.set('ci', { value: other, store: 'file' })).toMatchObject({
      store: 'file',
      note: expect.stringContaining('secret-tool clear'),
    });
    expect(await secrets.value('ci')).toBe(other);
  });

  it('that does not answer are an error after a while', async () => {
    const bus = await sessionBus(programs, { unlocked: true });
    inSession(bus.address);
    const [read, removed] = [folder(), folder()];
    for (const stateDir of [read, removed]) await open(stateDir).set('ci', { binding, value });
    await bus.freeze();
    const [reading, removing] = [open(read), open(removed)];
    const began = performance.now();
    // At the same time, because each of them waits for as long as the keyring is given.
    await Promise.all([
      expect(reading.value('ci')).rejects.toMatchObject({
        code: 'keyring_unavailable',
        message: expect.stringContaining('within 10 s'),
      }),
      expect(reading.set('new', { binding, value })).rejects.toThrow(/does not answer within/),
      expect(removing.remove('ci')).rejects.toThrow(/is removed, but the keyring may still have/),
    ]);
    expect(performance.now() - began).toBeLessThan(30_000);
    expect(reading.find('new')).toBeUndefined();
    expect(removing.list()).toEqual([]);
  });

  it('are shown with their place by the command line, and the user’s file chooses it', async () => {
    const bus = await sessionBus(programs, { unlocked: true });
    const stateDir = folder();
    const config = folder();
    const env = {
      SALLYPORT_STATE_DIR: stateDir,
      XDG_CONFIG_HOME: config,
      PATH: `${programs.bin}:${process.env['PATH']}`,
      DBUS_SESSION_BUS_ADDRESS: bus.address,
    };
    onTestFinished(async () => {
      await sally(['daemon', 'stop'], { env });
    });
    const set = async (name: string, ...more: readonly string[]) =>
      await sally(['secret', 'set', name, ...more], { env, input: value });
    expect(await set('anthropic')).toMatchObject({ code: 0, stderr: expect.stringContaining('keyring') });
    await mkdir(join(config, 'sallyport'));
    await writeFile(join(config, 'sallyport/config.yaml'), 'secrets: {store: file}\n');
    expect(await set('openai')).toMatchObject({ code: 0, stderr: expect.stringContaining('in the file') });
    expect(await set('github', '--store', 'keyring', '--json')).toMatchObject({ code: 0 });
    const listed = await sally(['secret', 'ls'], { env });
    expect(listed.stdout).toMatch(/anthropic .* keyring/);
    expect(listed.stdout).toMatch(/openai .* file/);
    const asJson = JSON.parse((await sally(['secret', 'ls', '--json'], { env })).stdout) as {
      store: string;
    }[];
    expect(asJson.map(({ store }) => store)).toEqual(['keyring', 'keyring', 'file']);
    expect((await sally(['secret', 'check'], { env })).code).toBe(0);
    expect(await set('x', '--store', 'elsewhere')).toMatchObject({ code: 2 });
    await writeFile(join(config, 'sallyport/config.yaml'), 'secrets: {store: elsewhere}\n');
    expect(await set('openai')).toMatchObject({ code: 2, stderr: expect.stringContaining('config.yaml') });
    expect((await sally(['doctor', '--json'], { env })).stdout).toMatch(/"keyring",[^}]*answers/);
    const others = readdirSync(stateDir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name !== 'secrets.json')
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'));
    expect(others.join('\n')).not.toContain(value);
    expect(fileOf(stateDir).split(value)).toHaveLength(2);
  });

  it('[N23] are forgotten by `sally uninstall --purge`, and kept without it', async () => {
    const bus = await sessionBus(programs, { unlocked: true });
    const home = await ownHome();
    const path = `${programs.bin}:${process.env['PATH']}`;
    const env = { PATH: path, DBUS_SESSION_BUS_ADDRESS: bus.address };
    const set = await home.sally(['secret', 'set', 'anthropic', '--store', 'keyring'], { env, input: value });
    expect(set.code).toBe(0);
    const item = /"keyring": "(\w+)"/.exec(fileOf(home.stateDir))?.[1] ?? '';
    inSession(bus.address);
    const keyring = systemKeyring('linux');
    expect((await home.sally(['uninstall', '--yes'], { env })).code).toBe(0);
    expect(await keyring?.read('anthropic', item)).toBe(value);
    expect((await home.sally(['uninstall', '--yes', '--purge'], { env })).code).toBe(0);
    await expect(keyring?.read('anthropic', item)).rejects.toMatchObject({ code: 'keyring_unavailable' });
  });
});
