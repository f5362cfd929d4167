/**
 * One daemon for each engine of a user. Docker under two addresses stands for two engines: client and daemon tell engines apart by
 * what the environment names. bubblewrap is another engine in any case.
 */

import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { listEngineFolders } from '../../src/lib/engine-folders.ts';
import { ownerId } from '../../src/lib/owner.ts';
import { DaemonClient } from '../../src/sdk/client.ts';
import { Sandbox } from '../../src/sdk/sandbox.ts';
import { type CliResult, newFolder, sally as runSally, startSally } from '../support/cli.ts';
import { testEngine } from '../support/engine.ts';
import { removeOwned } from '../support/owned-objects.ts';
import { commandExists, requirement } from '../support/requires.ts';
import { when } from '../support/selection.ts';
import { until } from '../support/until.ts';

interface TwoEngines {
  readonly stateDir: string;
  /** The command line with the first engine, with the second, and with bubblewrap. */
  readonly first: Sally;
  readonly second: Sally;
  readonly bubblewrap: Sally;
}

interface Sally {
  (args: readonly string[], options?: Parameters<typeof runSally>[1]): Promise<CliResult>;
  readonly env: Record<string, string>;
}

const image = (): readonly string[] => ['--image', inject('engine').image];
const socketPath = (): string => inject('engine').endpoint.replace('unix://', '');

async function twoEngines(): Promise<TwoEngines> {
  const folder = await mkdtemp('/tmp/sally-e-');
  const stateDir = join(folder, 's');
  const other = join(folder, 'other.sock');
  await symlink(socketPath(), other);
  onTestFinished(async () => {
    for (const { path } of listEngineFolders(stateDir)) {
      const client = new DaemonClient({ stateDir: path, anyEngine: true });
      for (const { name } of await Sandbox.list({ client }))
        await client.json('DELETE', `/v1/sandboxes/${name}`, { query: { force: true } });
      await client.shutdown().finally(() => client.close());
      await removeOwned(testEngine().connection, ownerId(process.getuid?.() ?? -1, path));
    }
    await rm(folder, { recursive: true, force: true });
  });
  const withEngine = (variables: Record<string, string>): Sally => {
    const env = { HOME: folder, SALLYPORT_STATE_DIR: stateDir, ...variables };
    return Object.assign(
      (args: readonly string[], options: Parameters<typeof runSally>[1] = {}) =>
        runSally(args, { ...options, env: { ...env, ...options.env } }),
      { env },
    );
  };
  return {
    stateDir,
    first: withEngine({ DOCKER_HOST: inject('engine').endpoint }),
    second: withEngine({ DOCKER_HOST: `unix://${other}` }),
    bubblewrap: withEngine({ DOCKER_HOST: '', SALLYPORT_ENGINE: 'bubblewrap' }),
  };
}

/** Of the first engine. */
function sdkClient(stateDir: string): DaemonClient {
  const before = process.env['DOCKER_HOST'];
  process.env['DOCKER_HOST'] = inject('engine').endpoint;
  const client = new DaemonClient({ stateDir });
  if (before === undefined) delete process.env['DOCKER_HOST'];
  else process.env['DOCKER_HOST'] = before;
  return client;
}

const done = (result: CliResult): string => {
  expect(result.code, result.stderr).toBe(0);
  return result.stdout;
};

const statusOf = async (sally: Sally): Promise<{ readonly pid: number; readonly engine_key: string }> =>
  JSON.parse(done(await sally(['daemon', 'status', '--json']))) as { pid: number; engine_key: string };

const errorOf = ({ stdout }: CliResult): unknown => (JSON.parse(stdout) as { error: unknown }).error;

describe('two engines', () => {
  test('have a daemon and a folder each: the first the state folder itself, the second one below it', async () => {
    const { first, second, stateDir } = await twoEngines();
    done(await first(['daemon', 'start']));
    done(await second(['daemon', 'start']));
    const [one, two] = [await statusOf(first), await statusOf(second)];
    expect(one.pid).not.toBe(two.pid);
    expect(existsSync(join(stateDir, 'daemon.sock'))).toBe(true);
    expect(await readdir(join(stateDir, 'engines'))).toEqual([two.engine_key]);
    expect(two).toMatchObject({
      other_engines: [{ engine_key: one.engine_key, running: true, pid: one.pid }],
    });

    // Stopping one leaves the other alone, and each comes back to its own folder.
    done(await first(['daemon', 'stop']));
    expect((await first(['daemon', 'status'])).code).toBe(1);
    expect((await statusOf(second)).pid).toBe(two.pid);
    done(await first(['daemon', 'start']));
    expect(await statusOf(first)).toMatchObject({ engine_key: one.engine_key });
    expect(done(await second(['daemon', 'stop', '--all']))).toMatch(/stopped.*\n.*stopped/);
    expect((await second(['daemon', 'status'])).code).toBe(1);
  });

  test('follow the current docker context, and what was made in another one is left as it is', async () => {
    const { first, stateDir } = await twoEngines();
    const home = join(stateDir, '..');
    const sally = (args: readonly string[]) => runSally(args, { env: { ...first.env, DOCKER_HOST: '' } });
    const use = async (name: string) => {
      const digest = createHash('sha256').update(name).digest('hex');
      const meta = join(home, '.docker/contexts/meta', digest);
      await mkdir(meta, { recursive: true });
      const socket = name === 'one' ? socketPath() : join(home, 'other.sock');
      const endpoints = { docker: { Host: `unix://${socket}` } };
      await writeFile(join(meta, 'meta.json'), JSON.stringify({ Name: name, Endpoints: endpoints }));
      await writeFile(join(home, '.docker/config.json'), JSON.stringify({ currentContext: name }));
    };
    await use('one');
    done(await sally(['create', '--name', 'kept', ...image()]));
    done(await sally(['daemon', 'stop', '--keep']));
    await use('two');
    const listed = await sally(['ls']);
    expect(done(listed)).not.toContain('kept');
    expect(listed.stderr).toContain('kept');
    // Its own daemon is started for it, with the context that it was made in.
    expect(done(await sally(['exec', 'kept', 'echo', 'is there']))).toBe('is there\n');
    done(await sally(['create', '--name', 'second', ...image()]));
    await use('one');
    expect(done(await sally(['ls']))).toMatch(/kept +ready/);
    expect(done(await sally(['exec', 'second', 'echo', 'as well']))).toBe('as well\n');
  });

  test('that are used for the first time at the same moment both start', async () => {
    const { first, second, stateDir } = await twoEngines();
    const both = await Promise.all([first, second, first, second].map((sally) => sally(['ls', '--json'])));
    for (const result of both) done(result);
    const keys = [(await statusOf(first)).engine_key, (await statusOf(second)).engine_key];
    expect(
      listEngineFolders(stateDir)
        .map(({ key }) => key)
        .sort(),
    ).toEqual(keys.sort());
  });

  test('an engine that cannot be reached does not take the state folder', async () => {
    const { first, stateDir } = await twoEngines();
    const missing = await first(['ls'], { env: { DOCKER_HOST: 'unix:///nowhere/docker.sock' } });
    expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining('/nowhere/docker.sock') });
    expect(listEngineFolders(stateDir)).toEqual([]);
    done(await first(['daemon', 'start']));
    expect(listEngineFolders(stateDir)).toMatchObject([{ path: stateDir }]);
  });

  test('a sandbox of the other one is listed, and found by its name, its id and the start of its id', async () => {
    const { first, second } = await twoEngines();
    done(await first(['create', ...image(), '--name', 'web']));
    const [{ id = '' } = {}] = (
      JSON.parse(done(await first(['ls', '--json']))) as { sandboxes: { id: string }[] }
    ).sandboxes;

    const listed = await second(['ls']);
    expect(listed.stderr).toContain('1 sandbox with another engine');
    expect(listed.stderr).toContain('web');
    expect(done(await second(['ls', '--quiet']))).toBe('');
    expect(JSON.parse(done(await second(['ls', '--json'])))).toMatchObject({
      sandboxes: [],
      other_engines: [{ engine: 'docker', endpoint: inject('engine').endpoint, sandboxes: 1 }],
    });
    expect(done(await second(['__complete', '--', 'exec', 'w']))).toBe('web\n');

    for (const reference of ['web', id, id.slice(0, 8)])
      expect(done(await second(['exec', reference, '--', 'echo', 'here']))).toBe('here\n');
    expect(await second(['exec', 'web', '--', 'sh', '-c', 'exit 7'])).toMatchObject({ code: 7 });
    // A body that can be sent only once, an interactive stream, and events.
    const folder = await newFolder('own');
    await writeFile(join(folder, 'file'), 'content\n');
    done(await second(['cp', join(folder, 'file'), 'web:file']));
    expect(
      done(await second(['exec', '-i', 'web', '--', 'sh', '-c', 'cat; cat ~/file'], { input: 'in\n' })),
    ).toBe('in\ncontent\n');
    expect(done(await second(['events', 'web', '--json']))).toContain('exec.ended');
    done(await second(['stop', 'web']));
    done(await second(['rm', 'web']));
    expect(errorOf(await second(['stats', 'web', '--json']))).toMatchObject({ code: 'sandbox_not_found' });
  });

  test('the daemon of the other one is started for a call to its sandbox', async () => {
    const { first, second } = await twoEngines();
    done(await first(['create', ...image(), '--name', 'web']));
    done(await first(['daemon', 'stop', '--keep']));
    expect(done(await second(['exec', 'web', '--', 'echo', 'here']))).toBe('here\n');
    expect((await statusOf(first)).engine_key).not.toBe((await statusOf(second)).engine_key);
  });

  test('a name of this engine wins over the same name elsewhere; one of two others is ambiguous', async () => {
    const { first, second, stateDir } = await twoEngines();
    for (const [sally, words] of [
      [first, 'first'],
      [second, 'second'],
    ] as const) {
      done(await sally(['create', ...image(), '--name', 'web']));
      done(await sally(['exec', 'web', '--', 'sh', '-c', `echo ${words} > ~/where`]));
    }
    expect(done(await first(['exec', 'web', '--', 'sh', '-c', 'cat ~/where']))).toBe('first\n');
    expect(done(await second(['exec', 'web', '--', 'sh', '-c', 'cat ~/where']))).toBe('second\n');

    const third = join(stateDir, '../third.sock');
    await symlink(socketPath(), third);
    const env = { DOCKER_HOST: `unix://${third}` };
    const error = errorOf(await first(['stats', 'web', '--json'], { env })) as {
      details: { ids: string[] };
    };
    expect(error).toMatchObject({ code: 'sandbox_ambiguous' });
    const said = await Promise.all(
      error.details.ids.map((id) => first(['exec', id, '--', 'sh', '-c', 'cat ~/where'], { env })),
    );
    expect(said.map(done).sort()).toEqual(['first\n', 'second\n']);
  });

  test("a folder's sandbox is made with the engine in use, though another one has one of that name", async () => {
    const { first, second } = await twoEngines();
    const cwd = await newFolder();
    await writeFile(join(cwd, 'sallyport.yaml'), `image: ${inject('engine').image}\n`);
    const line = ['exec', '--approve', '--', 'sh', '-c', 'cat ~/mark 2>/dev/null; echo mark > ~/mark'];
    expect(done(await first(line, { cwd }))).toBe('');
    expect(done(await second(line, { cwd }))).toBe('');
    expect(done(await first(line, { cwd }))).toBe('mark\n');
  });

  test('share one audit, which stays one chain, and the secrets', async () => {
    const { first, second } = await twoEngines();
    done(await first(['create', ...image(), '--name', 'one']));
    done(await second(['create', ...image(), '--name', 'two']));
    const echo = (sally: Sally, name: string, words: string): Promise<CliResult> =>
      sally(['exec', name, '--', 'echo', words]);
    await Promise.all(
      Array.from({ length: 5 }, (_, at) => [
        echo(first, 'one', `a${at}`),
        echo(second, 'two', `b${at}`),
      ]).flat(),
    );
    done(await second(['audit', 'verify']));
    const audit = done(await first(['audit', '--json']));
    for (const words of ['a0', 'a4', 'b0', 'b4']) expect(audit).toContain(words);

    const set = [
      'secret',
      'set',
      'of-both',
      '--host',
      'api.example.com',
      '--header',
      'x-key: {}',
      '--env',
      'KEY',
    ];
    done(await first([...set, '--store', 'file'], { input: 'value-of-the-secret\n' }));
    expect(done(await second(['secret', 'ls', '--json']))).toContain('of-both');
    done(await second(['secret', 'rm', 'of-both']));
    expect(done(await first(['secret', 'ls', '--json']))).not.toContain('of-both');
  });

  test("a question of one engine's client is answered by a user of the other", async () => {
    const { first, second, stateDir } = await twoEngines();
    done(await second(['daemon', 'start']));
    done(await first(['daemon', 'start']));
    const asking = startSally(['guard', '--json', '--', 'rm -rf /nowhere/at/all'], { env: first.env });
    let pending: { readonly id: string }[] = [];
    await until(async () => {
      pending = JSON.parse(done(await second(['approvals', '--json']))) as { id: string }[];
      return pending.length > 0;
    });
    const token = readFileSync(join(stateDir, 'approver-token'), 'utf8').trim();
    const env = { SALLYPORT_APPROVER_TOKEN: token };
    done(await second(['deny', pending[0]?.id ?? ''], { env }));
    expect(JSON.parse((await asking.result).stdout)).toMatchObject({ status: 'rejected' });
  });
});

when(requirement('bubblewrap', commandExists('bwrap'))).describe('--engine', () => {
  test('sends a new sandbox to the daemon of that engine, and later calls as well', async () => {
    const { first, bubblewrap } = await twoEngines();
    done(await first(['create', ...image(), '--name', 'strong']));
    const made = await first(['create', '--engine', 'bubblewrap', '--name', 'weak']);
    done(made);
    expect(made.stderr).toContain('isolates less than a container engine');
    expect(done(await first(['exec', 'weak', '--', 'echo', 'here']))).toBe('here\n');
    expect(JSON.parse(done(await first(['inspect', 'weak'])))).toMatchObject([
      { isolation: { engine: 'bubblewrap' } },
    ]);
    expect(done(await first(['run', '--engine', 'bubblewrap', '--', 'echo', 'once']))).toBe('once\n');
    // The daemon removes the sandbox of a run after the run's end.
    await until(async () => done(await bubblewrap(['ls', '--quiet'])) === 'weak\n');
    expect(
      done(
        await bubblewrap(['run', '--engine', 'docker', ...image(), '--', 'echo', 'docker'], {
          env: { DOCKER_HOST: inject('engine').endpoint },
        }),
      ),
    ).toBe('docker\n');
    done(await bubblewrap(['rm', '--force', 'strong']));
    done(await first(['rm', '--force', 'weak']));
  });

  test('of ls, prune, image and daemon chooses the daemon that they ask', async () => {
    const { first, bubblewrap } = await twoEngines();
    done(await first(['create', ...image(), '--name', 'strong']));
    const workspace = await newFolder();
    done(await first(['create', '--engine', 'bubblewrap', '--name', 'weak', '--workspace', workspace]));
    const there = ['--engine', 'bubblewrap'];
    expect(done(await first(['ls', '--quiet']))).toBe('strong\n');
    expect(done(await first(['ls', '--quiet', ...there]))).toBe('weak\n');
    expect(done(await bubblewrap(['ls', '--quiet', '--engine', 'auto']))).toBe('weak\n');

    const status = JSON.parse(done(await first(['daemon', 'status', '--json', ...there]))) as object;
    expect(status).toEqual(await statusOf(bubblewrap));
    expect(status).toMatchObject({ engine_key: 'bubblewrap' });

    await rm(workspace, { recursive: true });
    const prune = ['prune', '--dry-run', '--json'];
    expect(done(await first(prune))).not.toContain('weak');
    expect(done(await first([...prune, ...there]))).toContain('weak');
    expect(done(await first(['image', 'ls']))).toContain('sallyport');
    expect(done(await first(['image', 'ls', ...there]))).toBe(done(await bubblewrap(['image', 'ls'])));

    done(await first(['daemon', 'stop', ...there]));
    expect((await bubblewrap(['daemon', 'status'])).code).toBe(1);
    expect((await first(['daemon', 'status'])).code).toBe(0);
    expect(await first(['ls', '--engine', 'other'])).toMatchObject({ code: 2 });
    done(await bubblewrap(['rm', '--force', 'strong', 'weak']));
  });

  test('a name that was removed there and made here again is found here', async () => {
    const { stateDir } = await twoEngines();
    const client = sdkClient(stateDir);
    const there = await Sandbox.create({ engine: 'bubblewrap', name: 'moved' }, { client });
    await there.remove();
    const image = inject('engine').image;
    const other = sdkClient(stateDir);
    const here = await Sandbox.create({ image, name: 'moved' }, { client: other });
    const found = await Sandbox.connect('moved', { client });
    expect(found.id).toBe(here.id);
    expect(found.info.isolation.engine).toBe('docker');
    await here.remove();
    for (const one of [client, other]) one.close();
  });

  test('of the SDK goes there too', async () => {
    const { stateDir } = await twoEngines();
    const client = sdkClient(stateDir);
    const weak = await Sandbox.create({ engine: 'bubblewrap' }, { client });
    const strong = await Sandbox.create({ image: inject('engine').image }, { client });
    for (const [box, engine] of [
      [weak, 'bubblewrap'],
      [strong, 'docker'],
    ] as const) {
      expect(box.info.isolation.engine).toBe(engine);
      expect((await box.exec(['echo', 'here'])).stdout).toBe('here\n');
      await box.files.write('/tmp/file', 'content');
      expect(await box.files.readText('/tmp/file')).toBe('content');
      await box.remove();
    }
    client.close();
  });
});
