import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { engineVersion } from '../../src/engines/docker/system/version.ts';
import { silent } from '../../src/lib/progress.ts';
import { readSetupEnvironment, type SetupEnvironment } from '../../src/setup/config.ts';
import { gatherHostFacts } from '../../src/setup/host-facts.ts';
import { findDaemon, findLeftovers } from '../../src/setup/private-engine/owned-processes.ts';
import { type PrivateEnginePaths, privateEnginePaths } from '../../src/setup/private-engine/paths.ts';
import { startPrivateEngine } from '../../src/setup/private-engine/start.ts';
import { privateEngineStatus } from '../../src/setup/private-engine/status.ts';
import { stopPrivateEngine } from '../../src/setup/private-engine/stop.ts';
import { signalProcess, waitUntilGone } from '../../src/setup/processes.ts';
import { asRoot, when } from '../support/selection.ts';

// Starting a dockerd needs root; each test has an engine folder of its own and never touches the machine's engine.
when(asRoot).describe('the private engine', () => {
  let setup: SetupEnvironment;
  let paths: PrivateEnginePaths;
  let dockerd: string;

  beforeEach(async () => {
    setup = { ...readSetupEnvironment({ PATH: '' }), engineDir: await mkdtemp('/tmp/sally-e-') };
    paths = privateEnginePaths(setup);
    dockerd = (await gatherHostFacts(setup)).programs.dockerd ?? 'dockerd';
  });

  afterEach(async () => {
    await stopPrivateEngine(paths, { environment: setup.childVariables });
    expect(await findLeftovers(paths)).toEqual([]);
    await rm(paths.runDir, { recursive: true, force: true });
  });

  const start = (more: { signal?: AbortSignal; onProgress?: (message: string) => void } = {}) =>
    startPrivateEngine(paths, {
      dockerd,
      environment: setup.childVariables,
      progress: ({ message }) => more.onProgress?.(message),
      ...(more.signal === undefined ? {} : { signal: more.signal }),
    });

  it('[C3] starts, answers, is not started twice, stops, and is stopped again without an error', async () => {
    const first = await start();
    expect(first.startedHere).toBe(true);
    expect((await engineVersion(first.connection)).api).toMatch(/^1\.\d+$/);
    expect(await privateEngineStatus(paths)).toMatchObject({ state: 'running', pid: first.pid });
    expect(await start()).toMatchObject({ pid: first.pid, startedHere: false });

    const stopped = await stopPrivateEngine(paths, { environment: setup.childVariables });
    expect(stopped).toEqual({ wasRunning: true, pid: first.pid, killed: false, leftovers: 0 });
    expect(await privateEngineStatus(paths)).toMatchObject({ state: 'stopped' });
    for (const path of [paths.socket, paths.pidFile, paths.execRoot]) expect(existsSync(path)).toBe(false);
    expect(await readFile('/proc/self/mountinfo', 'utf8')).not.toContain(paths.runDir);

    const again = await stopPrivateEngine(paths, { environment: setup.childVariables });
    expect(again).toEqual({ wasRunning: false, killed: false, leftovers: 0 });
  });

  it('[C3] lets only one of two that start at the same moment be the engine', async () => {
    const [one, other] = await Promise.all([start(), start()]);
    expect(one.pid).toBe(other.pid);
  });

  it('[C3] starts over the pidfile of a crash whose pid belongs to another process now, and leaves that one alone', async () => {
    await writeFile(paths.pidFile, String(process.pid));
    expect(await findDaemon(paths)).toBeUndefined();
    expect(await stopPrivateEngine(paths, { environment: setup.childVariables })).toMatchObject({
      wasRunning: false,
    });
    await writeFile(paths.pidFile, String(process.pid));
    expect((await start()).startedHere).toBe(true);
  });

  it('[C3] comes up again after it was killed and its traces were taken away', async () => {
    await start();
    const daemon = await findDaemon(paths);
    if (daemon === undefined) throw new Error('it just started');
    await signalProcess(daemon, 'SIGKILL');
    await waitUntilGone([daemon], 10_000);
    await stopPrivateEngine(paths, { environment: setup.childVariables });
    expect(await findLeftovers(paths)).toEqual([]);
    expect((await start()).startedHere).toBe(true);
  });

  it('is stopped again, with no data left, when the caller gives up before it answers', async () => {
    const gaveUp = new AbortController();
    const starting = start({ signal: gaveUp.signal, onProgress: () => setImmediate(() => gaveUp.abort()) });
    await expect(starting).rejects.toMatchObject({ code: 'cancelled' });
    expect(await findDaemon(paths)).toBeUndefined();
    for (const path of [paths.socket, paths.pidFile, paths.execRoot, paths.dataRoot]) {
      expect(existsSync(path)).toBe(false);
    }
  });

  it('says what its log says when it dies at once', async () => {
    await writeFile(paths.configFile, '{"no-such-option": true}');
    await expect(start()).rejects.toMatchObject({
      code: 'engine_start_failed',
      message: expect.stringContaining('no-such-option'),
    });
    expect(await findDaemon(paths)).toBeUndefined();
  });

  it('says so when the program is not there', async () => {
    const starting = startPrivateEngine(paths, {
      dockerd: '/nowhere/dockerd',
      environment: setup.childVariables,
      progress: silent,
    });
    await expect(starting).rejects.toMatchObject({ code: 'engine_start_failed' });
  });
});
