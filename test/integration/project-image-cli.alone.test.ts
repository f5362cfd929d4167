/** A workspace's own Dockerfile as users meet it: asked once, built by the daemon, and what the image says about its user does not count. */

import { chown, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { dockerImageEngine } from '../../src/engines/docker/image-engine.ts';
import { Images } from '../../src/sdk/images.ts';
import { Sandbox } from '../../src/sdk/sandbox.ts';
import { type CliResult, cliLine, sally, startSally } from '../support/cli.ts';
import { testDaemon } from '../support/daemon.ts';
import { testEngine } from '../support/engine.ts';
import { newProject } from '../support/projects.ts';
import { commandExists, requirement } from '../support/requires.ts';
import { when } from '../support/selection.ts';
import { stateFolder } from '../support/state-folder.ts';

const { connection, image: testImage } = testEngine();
const engine = dockerImageEngine(connection);

/** Not root's, so that it may be a live workspace. All images of it are gone after the test. */
async function newWorkspace(files: Record<string, string>): Promise<string> {
  const folder = await newProject(files);
  if (process.getuid?.() === 0) await chown(folder, 1000, 1000);
  onTestFinished(async () => {
    for (const { id, tags } of await engine.listOwned('image-project'))
      if (tags.some((tag) => tag.startsWith(`sallyport-${basename(folder)}:`)))
        for (const derived of await engine.listOwned('image-user'))
          if (derived.labels['dev.sallyport.base'] === id) await engine.remove(derived.tags[0] ?? derived.id);
    for (const { tags } of await engine.listOwned('image-project'))
      for (const tag of tags) if (tag.startsWith(`sallyport-${basename(folder)}:`)) await engine.remove(tag);
  });
  return folder;
}

const hostile = `FROM ${testImage}
USER root
RUN echo built > /built
VOLUME /data
HEALTHCHECK CMD false
ONBUILD RUN false
ENTRYPOINT ["/bin/false"]
CMD ["nothing"]
`;

describe('a workspace with a Dockerfile.sallyport', () => {
  it('[O1] is refused without a terminal until it is approved; then its image is used, as the sandbox’s user', async () => {
    const cwd = await newWorkspace({ 'Dockerfile.sallyport': hostile });
    const run = [
      'run',
      '--workspace',
      '--workspace-mode',
      'readonly',
      '--',
      'sh',
      '-c',
      'cat /built; id -u; cat /proc/1/comm',
    ];
    const refused = await sally(run, { cwd });
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toContain(`build an image on ${testImage}`);
    expect(refused.stderr).toContain('run 1 command while it is built, with the network of your engine');
    expect(refused.stderr).toContain('--approve');

    const approved = await sally([...run.slice(0, 1), '--approve', ...run.slice(1)], { cwd });
    // Each sandbox has the next free user id; the one before may still be on its way out.
    const printed = /^built\n[1-9]\d+\nporter\n$/;
    expect(approved.stdout).toMatch(printed);
    expect(approved.stderr).toContain('build: 3/8 RUN echo built > /built');
    // Remembered: nobody is asked, and nothing is built.
    const again = await sally(run, { cwd });
    expect(again).toMatchObject({ code: 0, stdout: expect.stringMatching(printed) });
    expect(again.stderr).not.toContain('build:');

    await writeFile(join(cwd, 'Dockerfile.sallyport'), `${hostile}RUN echo more\n`);
    expect((await sally(run, { cwd })).code).toBe(2);
    const byVariable = await sally(['image', 'build', '--json'], {
      cwd,
      env: { SALLYPORT_APPROVE_PROJECT: '1' },
    });
    expect(JSON.parse(byVariable.stdout)).toMatchObject({ how: 'built' });
    const approvals = await readFile(join(stateFolder(), 'approvals.json'), 'utf8');
    expect(approvals).toContain(JSON.stringify(cwd));
  });

  it('[O1] is not looked at when an image is named', async () => {
    const cwd = await newWorkspace({ 'Dockerfile.sallyport': 'NONSENSE\n' });
    const shared = ['--workspace', '--workspace-mode', 'readonly'];
    const named = await sally(['run', ...shared, '--image', testImage, '--', 'true'], { cwd });
    expect(named).toMatchObject({ code: 0 });
    const wrong = await sally(['run', ...shared, '--', 'true'], { cwd });
    expect(wrong).toMatchObject({ code: 2 });
    expect(wrong.stderr).toContain('Dockerfile.sallyport, line 1: "NONSENSE" is no instruction');
  });

  it('[R2] `sally image` says why, shows the log, what uses it, and what could go', {
    timeout: 120_000,
  }, async () => {
    const cwd = await newWorkspace({
      'Dockerfile.sallyport': `FROM ${testImage}\nCOPY a /tmp/\nRUN echo logged-words\n`,
      a: '1',
    });
    expect((await sally(['image', 'why'], { cwd })).stdout).toContain('was never built');
    const built = await sally(['image', 'build', '--approve'], { cwd });
    expect(built.stdout).toMatch(new RegExp(`^sallyport-${basename(cwd)}:[0-9a-f]{12}  built in`));
    const [reference = ''] = built.stdout.split(' ');
    expect((await sally(['image', 'build'], { cwd })).stdout).toBe(`${reference}  nothing changed\n`);
    expect((await sally(['image', 'why'], { cwd })).stdout).toContain('nothing changed since');
    expect((await sally(['image', 'log'], { cwd })).stdout).toContain('logged-words');

    const name = basename(cwd);
    await sally(['create', '--workspace', '--workspace-mode', 'copy', '--name', name], { cwd });
    onTestFinished(async () => void (await sally(['rm', '--force', name])));
    const listed = JSON.parse((await sally(['image', 'ls', '--json'], { cwd })).stdout) as {
      images: { reference: string; usedBy: string[]; folder: string; sizeBytes: number }[];
    };
    expect(listed.images).toContainEqual(
      expect.objectContaining({ reference, usedBy: [name], folder: cwd, kind: 'project' }),
    );
    expect(await sally(['image', 'rm', reference])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(name),
    });

    await writeFile(join(cwd, 'a'), '2');
    const why = await sally(['image', 'why', '--json'], { cwd });
    expect(JSON.parse(why.stdout)).toMatchObject({
      isThere: false,
      changed: ['file:a'],
      added: [],
      removed: [],
    });
    await sally(['image', 'build', '--approve'], { cwd });
    // The first build is replaced; as long as the sandbox is there it stays.
    const prune = async () => (await sally(['image', 'prune', '--dry-run'])).stdout;
    expect(await prune()).not.toContain(reference);
    await sally(['rm', '--force', name]);
    expect(await prune()).toMatch(new RegExp(`${reference}  \\d+ MiB  would be removed`));
    expect((await sally(['image', 'prune'])).stdout).toMatch(new RegExp(`${reference}  \\d+ MiB  removed`));
    expect(await engine.find(reference)).toBeUndefined();
  });

  it('[R2] Ctrl-C ends a build, and nothing of it stays', async () => {
    const cwd = await newWorkspace({
      'Dockerfile.sallyport': `FROM ${testImage}\nRUN echo begun; sleep 1000\n`,
    });
    const running = startSally(['image', 'build', '--approve'], { cwd });
    await new Promise<void>((resolve) => {
      running.child.stderr?.on('data', (chunk: Buffer) => chunk.includes('2/2 RUN') && resolve());
    });
    running.child.kill('SIGINT');
    expect((await running.result).code).toBe(130);
    const left = (await engine.listOwned('image-project')).filter(({ tags }) =>
      tags.some((tag) => tag.includes(basename(cwd))),
    );
    expect(left).toEqual([]);
  });
});

describe('a program', () => {
  when(requirement('script', commandExists('script'))).it(
    '[O1] in a terminal it is shown and asked for, and no is no',
    { timeout: 120_000 },
    async () => {
      const cwd = await newWorkspace({ 'Dockerfile.sallyport': `FROM ${testImage}\nRUN true\n` });
      const answered = async (answer: string): Promise<CliResult> => {
        const line = `${cliLine()} image build`;
        const running = startSally(['-qec', line, '/dev/null'], {
          cwd,
          command: ['script'],
          openInput: true,
        });
        await running.said('Allow that for this folder? [y/N]');
        running.child.stdin?.end(`${answer}\n`);
        return await running.result;
      };
      const no = await answered('n');
      expect(no.code).toBe(2);
      expect(no.stdout).toContain(`build an image on ${testImage}`);
      expect((await sally(['image', 'build'], { cwd })).code).toBe(2);
      const yes = await answered('y');
      expect(yes).toMatchObject({ code: 0, stdout: expect.stringContaining('built in') });
      // Remembered, and for what was shown alone.
      expect(await sally(['image', 'build'], { cwd })).toMatchObject({
        code: 0,
        stdout: expect.stringContaining('nothing changed'),
      });
    },
  );

  it('[R3] `sally image rebuild` builds each step anew under the same name', {
    timeout: 120_000,
  }, async () => {
    const cwd = await newWorkspace({
      'Dockerfile.sallyport': `FROM ${testImage}\nUSER root\nRUN cat /proc/sys/kernel/random/uuid > /drawn\n`,
    });
    const first = JSON.parse((await sally(['image', 'build', '--approve', '--json'], { cwd })).stdout);
    const again = JSON.parse((await sally(['image', 'rebuild', '--json'], { cwd })).stdout);
    expect(again).toMatchObject({ how: 'built', reference: first.reference });
    expect(again.id).not.toBe(first.id);
    expect((await engine.find(first.reference))?.id).toBe(again.id);
    // What lost its name goes with the test.
    onTestFinished(() => engine.remove(first.id));
  });

  it('[O1] approves what it looked at, and gets exactly that or an error', async () => {
    const folder = await newWorkspace({
      'Dockerfile.sallyport': `FROM ${testImage}\nARG V=1\nUSER root\nRUN echo $V > /v\n`,
    });
    const daemon = await testDaemon();
    const workspace = { path: folder, mode: 'readonly' as const };
    const make = (more: object) => Sandbox.create({ workspace, ...more }, { client: daemon.client });
    await expect(make({})).rejects.toMatchObject({ code: 'project_not_approved' });
    const images = new Images({ client: daemon.client });
    const looked = await images.look(folder, { buildArgs: { V: '7' } });
    expect(looked).toMatchObject({ bases: [testImage], runs: 1, files: 0, network: 'default' });
    const other = make({ approveDockerfile: looked?.approval ?? '' });
    await expect(other).rejects.toMatchObject({ code: 'project_not_approved' });
    const build = { args: { V: '7' } };
    const steps: string[] = [];
    await images.build(folder, {
      buildArgs: { V: '7' },
      approveDockerfile: true,
      onProgress: ({ message }) => steps.push(message),
    });
    expect(steps).toContainEqual(expect.stringMatching(/^4\/4 RUN .* \(\d+\.\d s\)$/));
    await using box = await make({ build, approveDockerfile: looked?.approval ?? '' });
    expect((await box.sh('cat /v')).stdout.toString()).toBe('7\n');
    expect(box.info.image).toMatch(new RegExp(`^sallyport-${basename(folder)}:`));
    expect((await images.list()).find(({ reference }) => reference === box.info.image)?.usedBy).toEqual([
      box.name,
    ]);
  });
});
