import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../../../test/support/little-engine.ts';
import { contextEndpoint, currentContextName } from './contexts.ts';

const digest = (name: string): string => createHash('sha256').update(name).digest('hex');

function storeContext(config: string, name: string, meta: unknown, tlsFiles: readonly string[] = []): void {
  const metaFolder = join(config, 'contexts/meta', digest(name));
  mkdirSync(metaFolder, { recursive: true });
  writeFileSync(join(metaFolder, 'meta.json'), typeof meta === 'string' ? meta : JSON.stringify(meta));
  if (tlsFiles.length === 0) return;
  const tlsFolder = join(config, 'contexts/tls', digest(name), 'docker');
  mkdirSync(tlsFolder, { recursive: true });
  for (const file of tlsFiles) writeFileSync(join(tlsFolder, file), 'pem');
}

const meta = (Host: unknown, more: object = {}): object => ({ Endpoints: { docker: { Host, ...more } } });

describe('currentContextName', () => {
  it.each([
    ['{"currentContext":"remote"}', 'remote'],
    ['{"currentContext":"default"}', undefined],
    ['{"currentContext":""}', undefined],
    ['{"currentContext":7}', undefined],
    ['{}', undefined],
    ['null', undefined],
  ])('[G3] reads %s', async (text, name) => {
    const config = temporaryFolder();
    writeFileSync(join(config, 'config.json'), text);
    expect(await currentContextName(config)).toBe(name);
  });

  it('[G3] finds none where there is no docker configuration', async () => {
    expect(await currentContextName(join(temporaryFolder(), 'absent'))).toBeUndefined();
    expect(await currentContextName('/dev/null')).toBeUndefined();
  });

  it('[G3] refuses a configuration that cannot be read, instead of using another engine', async () => {
    const config = temporaryFolder();
    writeFileSync(join(config, 'config.json'), '{"currentContext":');
    await expect(currentContextName(config)).rejects.toMatchObject({ code: 'engine_endpoint_invalid' });
  });
});

describe('contextEndpoint', () => {
  it('[G3] finds the endpoint by the hash of the context name', async () => {
    const config = temporaryFolder();
    storeContext(config, 'colima', meta('unix:///home/me/.colima/default/docker.sock'));
    expect(await contextEndpoint(config, 'colima')).toEqual({
      kind: 'unix',
      path: '/home/me/.colima/default/docker.sock',
    });
  });

  it('[G3] takes the certificates that are stored beside it', async () => {
    const config = temporaryFolder();
    storeContext(config, 'tls', meta('tcp://h:2376'), ['ca.pem', 'cert.pem', 'key.pem']);
    const folder = join(config, 'contexts/tls', digest('tls'), 'docker');
    expect(await contextEndpoint(config, 'tls')).toEqual({
      kind: 'tcp',
      host: 'h',
      port: 2376,
      tls: {
        caPath: join(folder, 'ca.pem'),
        certPath: join(folder, 'cert.pem'),
        keyPath: join(folder, 'key.pem'),
        skipVerify: false,
      },
    });
  });

  it('[G3] honours SkipTLSVerify only where the context says exactly that', async () => {
    const config = temporaryFolder();
    storeContext(config, 'loose', meta('tcp://h', { SkipTLSVerify: true }));
    storeContext(config, 'odd', meta('tcp://h', { SkipTLSVerify: 'no' }), ['ca.pem']);
    expect(await contextEndpoint(config, 'loose')).toMatchObject({ port: 2376, tls: { skipVerify: true } });
    expect(await contextEndpoint(config, 'odd')).toMatchObject({ tls: { skipVerify: false } });
  });

  it.each<[string, unknown]>([
    ['no endpoint', {}],
    ['an empty host', meta('')],
    ['a host that is no text', meta(7)],
    ['null', null],
    ['broken JSON', '{'],
    ['an address that is none', meta('what://x')],
  ])('[G3] refuses a context with %s', async (_what, stored) => {
    const config = temporaryFolder();
    storeContext(config, 'bad', stored === null ? 'null' : stored);
    await expect(contextEndpoint(config, 'bad')).rejects.toMatchObject({ code: 'engine_endpoint_invalid' });
  });

  it('[G3] says that a context does not exist, and how to see those that do', async () => {
    await expect(contextEndpoint(temporaryFolder(), 'nope')).rejects.toMatchObject({
      code: 'engine_endpoint_invalid',
      message: 'docker context "nope" does not exist',
      advice: expect.stringContaining('docker context ls'),
    });
  });
});
