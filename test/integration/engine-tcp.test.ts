import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readEngineEnvironment } from '../../src/engines/docker/config.ts';
import { findEngine } from '../../src/engines/docker/discover.ts';
import type { EngineConnection } from '../../src/engines/docker/wire/connection.ts';
import { testEngine } from '../support/engine.ts';
import { exerciseConnection } from '../support/exercise.ts';
import { temporaryFolder } from '../support/little-engine.ts';
import { makePki, tcpProxy, tlsProxy } from '../support/proxy.ts';
import { requirement } from '../support/requires.ts';

const engine = testEngine();
const socketPath = engine.endpoint.replace(/^unix:\/\//, '');
const local = requirement('an engine on a local socket', socketPath !== engine.endpoint);

/** As a user would: through the environment. */
async function connectWith(env: Readonly<Record<string, string>>): Promise<EngineConnection> {
  const environment = readEngineEnvironment({ HOME: temporaryFolder(), ...env });
  return (await findEngine(environment)).connection;
}

describe.runIf(local)('an engine on a TCP port', () => {
  it('[G3] does all that one on a socket does', async () => {
    const port = await tcpProxy(socketPath);
    await exerciseConnection(engine, await connectWith({ DOCKER_HOST: `tcp://127.0.0.1:${port}` }));
  });

  it('[G3] that speaks TLS where none was asked for is no engine, with a typed error', async () => {
    const port = await tlsProxy(socketPath, await makePki(temporaryFolder()));
    await expect(connectWith({ DOCKER_HOST: `tcp://localhost:${port}` })).rejects.toMatchObject({
      code: expect.stringMatching(/^engine_(protocol|unreachable)$/),
    });
  });
});

describe.runIf(local)('an engine behind TLS', () => {
  const secured = (port: number, folder: string, host = 'localhost'): Record<string, string> => ({
    DOCKER_HOST: `tcp://${host}:${port}`,
    DOCKER_TLS_VERIFY: '1',
    DOCKER_CERT_PATH: folder,
  });

  it('[G3] does all that one on a socket does, with our certificate shown and its own verified', async () => {
    const pki = await makePki(temporaryFolder());
    const port = await tlsProxy(socketPath, pki);
    await exerciseConnection(engine, await connectWith(secured(port, pki.clientFolder)));
  });

  it('[G3] whose certificate is of another CA is refused', async () => {
    const port = await tlsProxy(socketPath, await makePki(temporaryFolder()));
    const other = await makePki(temporaryFolder());
    await expect(connectWith(secured(port, other.clientFolder))).rejects.toMatchObject({
      code: 'engine_unreachable',
      message: expect.stringContaining('is not trusted'),
      advice: expect.stringContaining('ca.pem'),
    });
  });

  it('[G3] whose certificate names another host is refused', async () => {
    const pki = await makePki(temporaryFolder());
    const port = await tlsProxy(socketPath, pki);
    await expect(connectWith(secured(port, pki.clientFolder, '127.0.0.1'))).rejects.toMatchObject({
      code: 'engine_unreachable',
      message: expect.stringContaining('is not trusted'),
    });
  });

  it('[G3] that gets no client certificate refuses us, and we say that', async () => {
    const pki = await makePki(temporaryFolder());
    const port = await tlsProxy(socketPath, pki);
    for (const file of ['cert.pem', 'key.pem']) rmSync(join(pki.clientFolder, file));
    await expect(connectWith(secured(port, pki.clientFolder))).rejects.toMatchObject({
      code: 'engine_permission_denied',
      advice: expect.stringContaining('cert.pem'),
    });
  });

  it('[G3] without DOCKER_TLS_VERIFY its certificate is not checked, as the docker CLI has it', async () => {
    const pki = await makePki(temporaryFolder());
    const port = await tlsProxy(socketPath, pki);
    const { DOCKER_TLS_VERIFY: _verify, ...env } = secured(port, pki.clientFolder, '127.0.0.1');
    expect((await connectWith(env)).apiVersion).toBe(engine.connection.apiVersion);
  });

  it('[G3] that does not speak TLS is no engine', async () => {
    const pki = await makePki(temporaryFolder());
    const port = await tcpProxy(socketPath);
    await expect(connectWith(secured(port, pki.clientFolder))).rejects.toMatchObject({
      code: 'engine_protocol',
      message: expect.stringContaining('does not speak TLS'),
    });
  });
});
