import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { readEngineEnvironment } from '../../src/engines/docker/config.ts';
import { connect } from '../../src/engines/docker/connect.ts';
import { waitForExit } from '../../src/engines/docker/containers/wait.ts';
import { findEngine } from '../../src/engines/docker/discover.ts';
import { parseEndpoint } from '../../src/engines/docker/endpoint/endpoint.ts';
import { runContainer, testEngine } from '../support/engine.ts';
import { exerciseConnection } from '../support/exercise.ts';
import { rawServer, temporaryFolder } from '../support/little-engine.ts';
import { requirement } from '../support/requires.ts';
import { findProgram, provideSsh, startSshServer } from '../support/ssh-server.ts';

const engine = testEngine();
const available =
  requirement('ssh and sshd', await provideSsh()) &&
  requirement('the docker CLI', findProgram('docker') !== undefined);

describe.runIf(available)('an engine behind ssh', () => {
  it('[G3] does all that one on a socket does, through the real ssh and sshd', async () => {
    const { address } = await startSshServer(engine.endpoint);
    const env = readEngineEnvironment({ HOME: temporaryFolder(), DOCKER_HOST: address });
    const { connection, source } = await findEngine(env);
    expect(source).toBe('DOCKER_HOST');
    expect(connection.endpoint).toBe(address);
    await exerciseConnection(engine, connection);
  });

  it('[G3] is left when a call is aborted or its deadline is over', async () => {
    const { address } = await startSshServer(engine.endpoint);
    const connection = await connect(parseEndpoint(address));
    const id = await runContainer(engine, 'exec sleep 600');
    await expect(waitForExit(connection, id, { timeoutMs: 1_000 })).rejects.toMatchObject({
      code: 'engine_timeout',
    });
    const controller = new AbortController();
    const waiting = waitForExit(connection, id, { timeoutMs: 60_000, signal: controller.signal });
    controller.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'cancelled' });
  });

  it('[G3] whose host key is unknown is refused, in the words of ssh and with what to do', async () => {
    const { address, forgetHostKey } = await startSshServer(engine.endpoint);
    forgetHostKey();
    await expect(connect(parseEndpoint(address))).rejects.toMatchObject({
      code: 'engine_unreachable',
      message: expect.stringContaining('Host key verification failed'),
      advice: expect.stringContaining(`ssh ${address}`),
    });
  });

  it('[G3] that is not there on the other machine is a typed error', async () => {
    const { address } = await startSshServer('unix:///nowhere/docker.sock');
    await expect(connect(parseEndpoint(address))).rejects.toMatchObject({
      code: 'engine_unreachable',
      message: expect.stringContaining('/nowhere/docker.sock'),
    });
  });

  it('[G3] that accepts and never answers runs into the deadline', async () => {
    const { address } = await startSshServer(`unix://${await rawServer(() => {})}`);
    await expect(connect(parseEndpoint(address), { timeoutMs: 3_000 })).rejects.toMatchObject({
      code: 'engine_timeout',
    });
  });

  it('[G3] cannot be reached where there is no ssh, and says that', async () => {
    vi.stubEnv('PATH', '/nowhere');
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    await expect(connect(parseEndpoint('ssh://me@127.0.0.1:1'))).rejects.toMatchObject({
      code: 'engine_unreachable',
      message: expect.stringContaining('the program ssh cannot be started'),
    });
  });
});
