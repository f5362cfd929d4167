import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { writeEngineFolder } from '../../lib/engine-folders.ts';
import { readEngineEnvironment } from './config.ts';

describe('readEngineEnvironment', () => {
  it('[G3] takes an empty variable for an absent one', () => {
    const env = readEngineEnvironment({
      HOME: '/h',
      DOCKER_HOST: '',
      DOCKER_TLS_VERIFY: '',
      DOCKER_CONFIG: '',
    });
    expect(env).toMatchObject({ home: '/h', dockerConfigDir: '/h/.docker', dockerTlsVerify: false });
    expect(env).not.toHaveProperty('dockerHost');
  });

  it('[G3] reads what the docker CLI reads', () => {
    const env = readEngineEnvironment({
      HOME: '/h',
      DOCKER_HOST: 'tcp://x',
      DOCKER_CONTEXT: 'c',
      DOCKER_CONFIG: '/cfg',
      DOCKER_TLS_VERIFY: '1',
      DOCKER_CERT_PATH: '/certs',
    });
    expect(env).toMatchObject({
      dockerHost: 'tcp://x',
      dockerContext: 'c',
      dockerConfigDir: '/cfg',
      dockerTlsVerify: true,
      dockerCertPath: '/certs',
    });
  });

  it('[G3] names the engine that has sandboxes in the state folder', () => {
    const stateDir = mkdtempSync(join(tmpdir(), 'sallyport-holder-'));
    onTestFinished(() => rmSync(stateDir, { recursive: true }));
    const env = { HOME: stateDir, SALLYPORT_STATE_DIR: stateDir };
    writeEngineFolder({ path: stateDir, key: 'docker', variables: {}, endpoint: 'unix:///a.sock' });
    expect(readEngineEnvironment(env)).not.toHaveProperty('holder');
    mkdirSync(join(stateDir, 'sandboxes', 'one'), { recursive: true });
    expect(readEngineEnvironment(env).holder).toBe('/a.sock');
    // Another engine has a folder of its own.
    expect(readEngineEnvironment({ ...env, DOCKER_CONTEXT: 'build' })).not.toHaveProperty('holder');
    writeEngineFolder({ path: stateDir, key: 'docker', variables: {}, endpoint: 'ssh://build' });
    expect(readEngineEnvironment(env)).not.toHaveProperty('holder');
  });
});
