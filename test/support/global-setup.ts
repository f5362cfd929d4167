/**
 * Before the integration tests: an engine and the test image. After them: proof that nothing was left behind. Running the
 * tests is the consent to set up what they need; each thing done is said on stderr.
 */

import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { readEngineEnvironment } from '../../src/engines/docker/config.ts';
import { describeEndpoint } from '../../src/engines/docker/endpoint/endpoint.ts';
import { dockerImageEngine } from '../../src/engines/docker/image-engine.ts';
import type { EngineConnection } from '../../src/engines/docker/wire/connection.ts';
import { ensureImage } from '../../src/images/ensure-image.ts';
import { listEngineFolders } from '../../src/lib/engine-folders.ts';
import { ownerId } from '../../src/lib/owner.ts';
import { label } from '../../src/protocol/labels.ts';
import { DaemonClient } from '../../src/sdk/client.ts';
import { readSetupEnvironment } from '../../src/setup/config.ts';
import { ensureEngine, type ReadyEngine } from '../../src/setup/ensure-engine.ts';
import { findDaemon } from '../../src/setup/private-engine/owned-processes.ts';
import { privateEnginePaths } from '../../src/setup/private-engine/paths.ts';
import { writeRuntimes } from '../../src/setup/private-engine/runtimes.ts';
import { privateEngineStatus } from '../../src/setup/private-engine/status.ts';
import { stopPrivateEngine } from '../../src/setup/private-engine/stop.ts';
import { leftovers, porterVolumes, removeNewPorterVolumes } from './leftovers.ts';
import './provided.ts';
import { isRoot } from './requires.ts';

const say = (message: string): void => {
  process.stderr.write(`set-up: ${message}\n`);
};

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  // The projects share one run. The first of them sets up, for all; its teardown comes after the last test of each.
  const whole = project.vitest.getRootProject();
  if ('engine' in whole.getProvidedContext()) return async () => {};
  const runId = `${Date.now().toString(36)}-${randomBytes(4).toString('hex')}`;
  const stateFolders = await mkdtemp(join(tmpdir(), 'sallyport-run-'));
  // For what reads the environment in a test's own process. The command line is given one of those inside.
  process.env['SALLYPORT_STATE_DIR'] = stateFolders;
  const ready = await ensureEngine({
    environment: readEngineEnvironment(),
    setup: readSetupEnvironment(),
    progress: ({ message }) => say(message),
    consent: async (plan) => {
      say(`installing ${plan.packages.join(', ')}`);
      return true;
    },
  });
  const { connection, endpoint, source } = ready.found;
  say(`engine: ${describeEndpoint(endpoint)} (${source}, ${ready.how})`);
  if (ready.privateEngine && isRoot) await offerRuntimes();
  try {
    const image = await provideImage('test', connection);
    const base = await provideImage('base', connection);
    whole.provide('engine', {
      endpoint: describeEndpoint(endpoint),
      apiVersion: connection.apiVersion ?? '',
      image,
      baseImage: base,
    });
    whole.provide('runId', runId);
    whole.provide('stateFolders', stateFolders);
    const porterBefore = await porterVolumes(connection);
    return () => tearDown(ready, { runId, stateFolders, porterBefore });
  } catch (error) {
    // vitest calls no teardown for a set-up that failed.
    await stopOwnEngine(ready);
    await rm(stateFolders, { recursive: true, force: true });
    throw error;
  }
}

async function provideImage(name: 'test' | 'base', connection: EngineConnection): Promise<string> {
  const image = await ensureImage(name, {
    engine: dockerImageEngine(connection),
    progress: ({ message }) => say(message),
    consent: async (packages) => {
      say(`installing ${packages.join(', ')}`);
      return true;
    },
  });
  say(`${name} image: ${image.reference} (${image.how}, ${image.durationMs} ms)`);
  return image.reference;
}

/** An engine that was started before a runtime was installed reads its configuration again; nothing that runs is touched. */
async function offerRuntimes(): Promise<void> {
  const environment = readSetupEnvironment();
  const paths = privateEnginePaths(environment);
  if (!(await writeRuntimes(paths.configFile, environment.childVariables))) return;
  const daemon = await findDaemon(paths);
  if (daemon === undefined) return;
  say('the private engine reads its runtimes again');
  process.kill(daemon.pid, 'SIGHUP');
}

interface Run {
  readonly runId: string;
  readonly stateFolders: string;
  readonly porterBefore: ReadonlySet<string>;
}

async function tearDown(ready: ReadyEngine, run: Run): Promise<void> {
  const problems: string[] = [];
  const places = (await readdir(run.stateFolders)).filter((name) => /^\d+(-[a-z]+)?$/.test(name));
  const homes = [run.stateFolders, ...places.map((name) => join(run.stateFolders, name))];
  const stateDirs = homes.flatMap(engineFoldersOf);
  for (const stateDir of stateDirs) {
    try {
      await stopDaemon(stateDir);
    } catch (error) {
      problems.push(`the daemon of ${stateDir} could not be stopped: ${String(error)}`);
    }
  }
  try {
    problems.push(...(await inspectEngine(ready.found.connection, run, stateDirs)));
  } catch (error) {
    problems.push(`the engine could not be inspected: ${String(error)}`);
  }
  for (const stateDir of stateDirs) problems.push(...(await boxesLeft(stateDir)));
  problems.push(...(await stopOwnEngine(ready)));
  await rm(run.stateFolders, { recursive: true, force: true });
  if (problems.length === 0) return;
  // Set here as well, because what a teardown throws is printed and does not decide the exit status by itself.
  process.exitCode = 1;
  throw new Error(`the test run left something behind:\n  ${problems.join('\n  ')}`);
}

/** Of each engine that was used with a state folder. */
const engineFoldersOf = (home: string): readonly string[] => [
  ...new Set([home, ...listEngineFolders(home).map(({ path }) => path)]),
];

/** One that the command line started for the tests. What it stops is still there, and so is found to be left. */
async function stopDaemon(stateDir: string): Promise<void> {
  const client = new DaemonClient({ stateDir, startDaemon: false, anyEngine: true });
  await client.shutdown().finally(() => client.close());
}

async function inspectEngine(
  connection: EngineConnection,
  run: Run,
  stateDirs: readonly string[],
): Promise<readonly string[]> {
  const owners = stateDirs.map((stateDir) => ownerId(process.getuid?.() ?? -1, stateDir));
  const ours = [`${label.test}=${run.runId}`, ...owners.map((owner) => `${label.owner}=${owner}`)];
  const left = (await Promise.all(ours.map((labelled) => leftovers(connection, labelled)))).flat();
  await removeNewPorterVolumes(connection, run.porterBefore);
  return left;
}

/** Of bubblewrap, which has nothing of its own to ask: a box is a folder. */
async function boxesLeft(stateDir: string): Promise<readonly string[]> {
  const folder = join(stateDir, 'bubblewrap');
  const names = await readdir(folder).catch(() => []);
  return names.filter((name) => !name.startsWith('etc-')).map((name) => `the box ${join(folder, name)}`);
}

/** The private engine is stopped if this run started it; one that was there before stays as it was. */
async function stopOwnEngine(ready: ReadyEngine): Promise<readonly string[]> {
  if (!ready.privateEngine || ready.how === 'answered') return [];
  const environment = readSetupEnvironment();
  const paths = privateEnginePaths(environment);
  try {
    await stopPrivateEngine(paths, { environment: environment.childVariables });
    const { state } = await privateEngineStatus(paths);
    return state !== 'stopped' ? [`the private engine at ${paths.socket} still runs`] : [];
  } catch (error) {
    return [`the private engine at ${paths.socket} could not be stopped: ${String(error)}`];
  }
}
