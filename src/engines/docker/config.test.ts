import { describe, expect, it } from 'vitest';
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
});
