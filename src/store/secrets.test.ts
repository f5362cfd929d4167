import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { bundleProgram } from '../../test/support/child-program.ts';
import { startWriters } from '../../test/support/shared-writers.ts';
import type { SecretBinding } from '../protocol/secrets.ts';
import { GateKeyFiles } from './gate-keys.ts';
import { openSecrets } from './secrets.ts';

const binding: SecretBinding = {
  hosts: ['api.test'],
  port: 443,
  headers: ['authorization'],
  env: ['TOKEN'],
  prefix: '',
};
const value = 'the-real-value-0123';

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'sallyport-secrets-'));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

const jwt = (exp: number): string =>
  `e30.${Buffer.from(JSON.stringify({ exp })).toString('base64url')}.c2lnbmF0dXJl`;

describe('secrets on disk', () => {
  it('[R7] have at least 8 characters, because shorter ones cannot be masked in answers', async () => {
    const secrets = openSecrets(folder());
    await expect(secrets.set('ci', { binding, value: 'seven77' })).rejects.toMatchObject({
      code: 'secret_invalid',
      message: expect.stringMatching(/fewer than 8 characters/),
      advice: expect.stringMatching(/longer value/),
    });
    expect(secrets.list()).toEqual([]);
    await secrets.set('ci', { binding, value: 'eight888' });
    await secrets.set('made', { binding, command: ['echo', 'seven77'] });
    await expect(secrets.value('made')).rejects.toMatchObject({
      code: 'secret_unavailable',
      message: expect.stringMatching(/fewer than 8 characters/),
    });
  });

  it('[R8] are for their owner alone, outlive the daemon, and are listed without their values', async () => {
    const at = folder();
    const secrets = openSecrets(at);
    await secrets.set('ci', { binding, value, budget: 3 });
    expect(statSync(join(at, 'secrets.json')).mode & 0o777).toBe(0o600);
    const again = openSecrets(at);
    expect(again.list()).toMatchObject([{ name: 'ci', source: 'value', budget: 3 }]);
    expect(JSON.stringify(again.list())).not.toContain(value);
    expect(await again.value('ci')).toBe(value);
    await again.remove('ci');
    expect(openSecrets(at).list()).toEqual([]);
    await expect(again.value('ci')).rejects.toMatchObject({ code: 'secret_not_found' });
  });

  it('[R8] keep what is not named when they are changed, and need a host and a value to begin with', async () => {
    const secrets = openSecrets(folder());
    await expect(secrets.set('ci', { value })).rejects.toThrow(/bound to no host/);
    await expect(secrets.set('ci', { binding })).rejects.toThrow(/has no value/);
    await secrets.set('ci', { binding, value });
    await secrets.set('ci', { value: 'rotated-value-4567' });
    expect(await secrets.value('ci')).toBe('rotated-value-4567');
    await secrets.set('ci', { budget: 5 });
    expect([await secrets.value('ci'), secrets.budget('ci')]).toEqual(['rotated-value-4567', 5]);
    expect(secrets.binding('ci')).toEqual(binding);
  });

  it('[R8] check: valid, expiring, expired, missing, failing', async () => {
    const now = new Date('2026-01-01T00:00:00Z');
    const secrets = openSecrets(folder(), () => now);
    const day = 86_400;
    const start = now.getTime() / 1000;
    const state = async (name: string): Promise<string> => (await secrets.check(name)).state;
    await secrets.set('plain', { binding, value });
    await secrets.set('long', { binding, value: jwt(start + 30 * day) });
    await secrets.set('short', { binding, value: jwt(start + 2 * day) });
    await secrets.set('past', { binding, value: jwt(start - day) });
    await secrets.set('told', { binding, value, expiresAt: '2025-12-01T00:00:00.000Z' });
    await secrets.set('broken', { binding, command: ['/nonexistent-program'] });
    const names = ['plain', 'long', 'short', 'past', 'told', 'broken', 'absent'];
    expect(await Promise.all(names.map(state))).toEqual([
      'valid',
      'valid',
      'expiring',
      'expired',
      'expired',
      'failing',
      'missing',
    ]);
  });

  it('[R7] of a command are run once within their time, and what it prints is in no error', async () => {
    const at = folder();
    const counter = join(at, 'count');
    const program = join(at, 'token');
    writeFileSync(program, `#!/bin/sh\necho x >> ${counter}\necho dynamic-value-$(wc -l < ${counter})\n`);
    chmodSync(program, 0o755);
    const secrets = openSecrets(at);
    await secrets.set('ci', { binding, command: [program], ttlMs: 60_000 });
    const values = await Promise.all([secrets.value('ci'), secrets.value('ci')]);
    expect([...values, await secrets.value('ci')]).toEqual(Array(3).fill('dynamic-value-1'));
    // A change counts from the next request on.
    await secrets.set('ci', { ttlMs: 1000 });
    expect(await secrets.value('ci')).toBe('dynamic-value-2');
    expect(readFileSync(join(at, 'secrets.json'), 'utf8')).not.toContain('dynamic-value');
    for (const script of [
      'echo dynamic value of two words',
      'echo leaked-value-99; echo leaked-value-99 >&2; exit 3',
    ]) {
      await secrets.set('bad', { binding, command: ['sh', '-c', script] });
      const error = await secrets.value('bad').catch((failure: unknown) => failure);
      expect(error).toMatchObject({ code: 'secret_unavailable' });
      expect(JSON.stringify([String(error), (error as Error).stack, error])).not.toMatch(
        /dynamic value|leaked/,
      );
    }
  });

  it('that cannot be understood are left as they are, and not shown', async () => {
    const at = folder();
    const text = `{"version":1,"secrets":{"ci":{"value":"${value}"}}}`;
    writeFileSync(join(at, 'secrets.json'), text, { mode: 0o600 });
    const secrets = openSecrets(at);
    expect(() => secrets.list()).toThrow(/cannot be understood/);
    await expect(secrets.set('x', { binding, value })).rejects.toThrow(/cannot be understood/);
    expect(readFileSync(join(at, 'secrets.json'), 'utf8')).toBe(text);
  });
});

describe('secrets that several processes share', () => {
  it('[R8] are all kept when processes set different ones at once', async () => {
    const { outfile } = await bundleProgram('./shared-writer.ts');
    const at = folder();
    const writers = ['a', 'b', 'c'];
    const children = await startWriters(
      outfile,
      writers.map((who) => ({ kind: 'secrets', folder: at, who, count: 25 })),
    );
    for (const child of children) child.go();
    await Promise.all(children.map((child) => child.lines()));
    const secrets = openSecrets(at);
    expect(secrets.list()).toHaveLength(75);
    for (const who of writers) expect(await secrets.value(`${who}-25`)).toBe(`value-of-${who}-25`);
    expect(readdirSync(at)).toEqual(['secrets.json']);
  });

  it('[R8] are seen as another process left them, and a value that it replaced is forgotten', async () => {
    const at = folder();
    const [one, two] = [openSecrets(at), openSecrets(at)];
    expect([one.list(), two.list()]).toEqual([[], []]);
    await one.set('ci', { binding, command: ['echo', 'first-value-0123'] });
    await one.set('other', { binding, command: ['sh', '-c', `echo x >> ${at}/runs; echo other-value-0123`] });
    expect(await two.value('ci')).toBe('first-value-0123');
    expect(await two.value('other')).toBe('other-value-0123');
    await one.set('ci', { command: ['echo', 'second-value-012'] });
    expect(await two.value('ci')).toBe('second-value-012');
    // What did not change is still known.
    expect(await two.value('other')).toBe('other-value-0123');
    expect(readFileSync(join(at, 'runs'), 'utf8')).toBe('x\n');
    await two.remove('ci');
    await expect(one.value('ci')).rejects.toMatchObject({ code: 'secret_not_found' });
    await expect(one.remove('ci')).rejects.toMatchObject({ code: 'secret_not_found' });
  });

  it('[R8] keep the change of another process to the same secret', async () => {
    const at = folder();
    const [one, two] = [openSecrets(at), openSecrets(at)];
    await one.set('ci', { binding, value, budget: 1 });
    await Promise.all([one.set('ci', { budget: 7 }), two.set('ci', { value: 'rotated-value-4567' })]);
    expect([one.budget('ci'), await one.value('ci')]).toEqual([7, 'rotated-value-4567']);
    expect([two.budget('ci'), await two.value('ci')]).toEqual([7, 'rotated-value-4567']);
  });
});

describe('the keys of a sandbox’s gate', () => {
  it('[R7] outlive the daemon, for their owner alone', () => {
    const at = folder();
    const id = 'sb-abcdefghij' as Parameters<GateKeyFiles['load']>[0];
    const keys = { authority: { name: 'a', key: 'k', certificate: 'c' }, phantoms: { ci: 'p' } };
    expect(new GateKeyFiles(at).load(id)).toBeUndefined();
    new GateKeyFiles(at).save(id, keys);
    expect(new GateKeyFiles(at).load(id)).toEqual(keys);
    expect(statSync(join(at, 'sandboxes', id, 'gate.json')).mode & 0o777).toBe(0o600);
    expect(() => new GateKeyFiles(at).load('../x' as typeof id)).toThrow(RangeError);
  });
});
