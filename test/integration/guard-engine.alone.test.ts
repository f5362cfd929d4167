/**
 * Docker goes away and comes back under guarded commands, and appears where bubblewrap was chosen: on an engine of the test's
 * own. What belongs in a sandbox never runs on the host meanwhile, and no sandbox is lost.
 */

import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, inject, onTestFinished, test } from 'vitest';
import { readEngineEnvironment } from '../../src/engines/docker/config.ts';
import { discoverEngine } from '../../src/engines/docker/discover.ts';
import { rememberEngine } from '../../src/lib/engine-choice.ts';
import type { SallyEvent } from '../../src/protocol/events.ts';
import type { GuardResult } from '../../src/protocol/guard.ts';
import type { HealthView, SandboxView } from '../../src/protocol/views.ts';
import { Audit } from '../../src/sdk/audit.ts';
import type { DaemonClient } from '../../src/sdk/client.ts';
import { followWireEvents } from '../../src/sdk/events.ts';
import { guard } from '../../src/sdk/guard.ts';
import { type CliResult, cliLine, newFolder, sally } from '../support/cli.ts';
import { daemonHome } from '../support/daemon-home.ts';
import { copyTestImage, ownEngine } from '../support/own-engine.ts';
import { commandExists, requirement } from '../support/requires.ts';
import { asRoot, when } from '../support/selection.ts';

async function until(
  client: DaemonClient,
  since: number,
  isIt: (event: SallyEvent) => boolean,
): Promise<SallyEvent> {
  for await (const event of followWireEvents(client, { since })) if (isIt(event)) return event;
  throw new Error('the events ended');
}

const sequenceOf = async (client: DaemonClient): Promise<number> =>
  (await client.json<HealthView>('GET', '/v1/health')).sequence;

const sandboxesOf = async (client: DaemonClient): Promise<readonly SandboxView[]> =>
  (await client.json<{ sandboxes: SandboxView[] }>('GET', '/v1/sandboxes')).sandboxes;

when(asRoot).describe('[C1][C3] guarded commands while Docker is stopped and started', () => {
  test('one that runs is told as lost or ended, later ones are rejected, and all go on when it is back', async () => {
    const engine = await ownEngine();
    await engine.start();
    await copyTestImage(engine.socket);
    const home = await daemonHome();
    const { client, child } = await home.start({ DOCKER_HOST: `unix://${engine.socket}` });
    const connection = { client, stateDir: home.stateDir };
    const sandbox = { image: inject('engine').image };
    const folder = await newFolder('own');
    const mark = join(folder, 'ran-on-the-host');
    const command = `frobnicate; touch ${mark}; echo inside`;
    const inside = { status: 'error', sandboxed: true, engine: 'docker' };
    expect(await guard(`${command}; false`, { sandbox }, connection)).toMatchObject(inside);

    const before = await sequenceOf(client);
    const running = guard('frobnicate; exec tail -f /dev/null', { sandbox }, connection);
    const ended = expect(running).resolves.toMatchObject({ ...inside, exitCode: 143 });
    await until(client, before, ({ type }) => type === 'exec.started');
    await engine.stop();
    await ended;
    await until(client, before, (event) => event.type === 'engine.reachable' && !event.reachable);

    for (const cwd of [folder, undefined]) {
      const rejected = await guard(
        command,
        { sandbox, ask: false, ...(cwd === undefined ? {} : { cwd }) },
        connection,
      );
      expect(rejected).toMatchObject({ status: 'rejected', sandboxed: false, engine: 'none' });
      expect(rejected.reason).toContain(engine.socket);
    }
    const env = { SALLYPORT_STATE_DIR: home.stateDir, DOCKER_HOST: `unix://${engine.socket}` };
    const cli = await sally(['guard', '--image', sandbox.image, '--', command], { env, cwd: folder });
    expect(cli).toMatchObject({ code: 126, stdout: '', stderr: expect.stringContaining('it did not run') });
    expect(existsSync(mark)).toBe(false);
    // What belongs on the host needs no engine.
    expect(await guard('pwd', { cwd: folder }, connection)).toMatchObject({ stdout: `${folder}\n` });

    await engine.start();
    await until(client, before, (event) => event.type === 'engine.reachable' && event.reachable);
    const again = await guard(command, { sandbox }, connection);
    expect(again).toMatchObject({ status: 'success', stdout: 'inside\n', sandboxed: true, engine: 'docker' });
    expect(child.exitCode).toBeNull();
    // Those whose removal the engine did not answer are removed when it is back.
    for (let since = before; (await sandboxesOf(client)).length > 0; ) {
      const { sequence } = await until(client, since, (event) => 'to' in event && event.to === 'DELETED');
      since = sequence;
    }
    const lines = [];
    for await (const line of new Audit({ client }).search({ type: 'guard' })) lines.push(line);
    const ofIt = lines.filter(({ command: recorded }) => recorded === command);
    expect(ofIt.map(({ where, outcome }) => `${where} ${outcome}`)).toEqual(
      Array(3).fill('nowhere rejected'),
    );
  }, 180_000);
});

/** Where another engine answers at a usual place, it would be found. */
const elsewhere = await discoverEngine(readEngineEnvironment({ HOME: '/nowhere' }));
const isFree = elsewhere.found === undefined && !existsSync('/run/systemd/system');

when(
  asRoot,
  requirement('bubblewrap', commandExists('bwrap')),
  requirement('a machine without an engine of its own', isFree),
).describe('[C1][C3] Docker appears where bubblewrap was chosen', () => {
  test('it is used from the next start on, and each engine keeps its sandboxes', async () => {
    const engine = await ownEngine();
    const folder = await mkdtemp('/tmp/sally-g-');
    const stateDir = join(folder, 'state');
    const auto = {
      HOME: folder,
      DOCKER_HOST: '',
      SALLYPORT_ENGINE_DIR: engine.folder,
      SALLYPORT_STATE_DIR: stateDir,
    };
    onTestFinished(async () => {
      for (const name of ['of-docker', 'of-bubblewrap']) await sally(['rm', '--force', name], { env: auto });
      await sally(['daemon', 'stop', '--all'], { env: auto });
      await rm(folder, { recursive: true, force: true });
    });
    const image = ['--image', inject('engine').image];
    const command = 'frobnicate; echo inside';

    // Docker is not even installed, and nobody has chosen anything: a guarded command gets bubblewrap, and the answer says so.
    const unchosen = await withoutDockerd(['guard', '--json', '--', command], auto);
    expect(resultOf(unchosen)).toMatchObject({
      status: 'success',
      stdout: 'inside\n',
      engine: 'bubblewrap',
      reason: expect.stringContaining('isolates less'),
    });
    // One that is installed and does not come up is none, either.
    const broken = await withDockerd('/bin/false', ['guard', '--json', '--', command], auto);
    expect(resultOf(broken)).toMatchObject({ stdout: 'inside\n', engine: 'bubblewrap' });
    // Other verbs do not.
    const none = await withoutDockerd(['create', '--json', '--name', 'of-nobody'], auto);
    expect(errorOf(none)).toMatchObject({ code: 'engine_not_chosen' });
    // As a yes at the terminal does.
    rememberEngine(stateDir, 'bubblewrap');
    expect(await withoutDockerd(['create', '--name', 'of-bubblewrap'], auto)).toMatchObject({ code: 0 });
    await inBox('of-bubblewrap', 'echo kept > ~/file', auto);
    const weaker = await sally(['guard', '--json', '--', command], { env: auto });
    expect(resultOf(weaker)).toMatchObject({ status: 'success', stdout: 'inside\n', engine: 'bubblewrap' });

    await engine.start();
    await copyTestImage(engine.socket);
    // Nothing changes under a daemon that runs.
    expect(resultOf(await sally(['guard', '--json', '--', command], { env: auto }))).toMatchObject({
      engine: 'bubblewrap',
    });
    expect((await sally(['daemon', 'stop', '--keep'], { env: auto })).code).toBe(0);

    const stronger = await sally(['guard', '--json', ...image, '--', command], { env: auto });
    expect(resultOf(stronger)).toMatchObject({ status: 'success', stdout: 'inside\n', engine: 'docker' });
    expect((await sally(['ls'], { env: auto })).stderr).toContain('of-bubblewrap');
    expect(await sally(['create', ...image, '--name', 'of-docker'], { env: auto })).toMatchObject({
      code: 0,
    });
    await inBox('of-docker', 'echo kept too > ~/file', auto);
    expect((await sally(['prune', '--older-than', '1s', '--json'], { env: auto })).stdout).not.toContain(
      'of-bubblewrap',
    );
    // It was never stopped: its daemon was, and is started again for the call.
    expect(await inBox('of-bubblewrap', 'cat ~/file', auto)).toBe('kept\n');
    expect(await inBox('of-docker', 'cat ~/file', auto)).toBe('kept too\n');
  }, 180_000);
});

const resultOf = ({ stdout }: CliResult): GuardResult => JSON.parse(stdout) as GuardResult;

const errorOf = ({ stdout }: CliResult): { readonly code: string } =>
  (JSON.parse(stdout) as { error: { code: string } }).error;

async function inBox(name: string, line: string, env: Record<string, string>): Promise<string> {
  const { code, stdout, stderr } = await sally(['exec', name, '--', 'sh', '-c', line], { env });
  expect(code, stderr).toBe(0);
  return stdout;
}

/** In a view of the file system in which dockerd cannot be started, and so in that of the daemon that it starts. */
async function withoutDockerd(args: readonly string[], env: Record<string, string>): Promise<CliResult> {
  return await withDockerd('/dev/null', args, env);
}

/** In a view of the file system in which another file is in the place of dockerd. */
async function withDockerd(
  file: string,
  args: readonly string[],
  env: Record<string, string>,
): Promise<CliResult> {
  const line = `mount --bind ${file} "$(command -v dockerd)" && exec ${cliLine()} "$@"`;
  return await sally(args, { env, command: ['unshare', '-m', 'sh', '-c', line, 'sh'] });
}
