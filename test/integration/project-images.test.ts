/** Images of a project's own Dockerfile on the real engine: built once, named by their inputs, and nothing left of what failed. */

import { cp, readdir, readFile, truncate, utimes, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { dockerBuildTurns } from '../../src/engines/docker/build-turns.ts';
import { waitForExit } from '../../src/engines/docker/containers/wait.ts';
import { dockerImageEngine } from '../../src/engines/docker/image-engine.ts';
import { createVolume } from '../../src/engines/docker/volumes/create.ts';
import { removeVolume } from '../../src/engines/docker/volumes/remove.ts';
import { buildOn } from '../../src/images/build-on.ts';
import { ensureImage } from '../../src/images/ensure-image.ts';
import { ensureTemplate } from '../../src/images/ensure-template.ts';
import { readRecipe } from '../../src/images/recipe.ts';
import type { ProgressEvent } from '../../src/lib/progress.ts';
import { label } from '../../src/protocol/labels.ts';
import { ImageRecordFiles } from '../../src/store/image-records.ts';
import { processHolder } from '../../src/store/process-identity.ts';
import { newFolder } from '../support/cli.ts';
import { runContainer, testEngine } from '../support/engine.ts';
import { engineWithFailingBuild } from '../support/engine-between.ts';
import { madeUpHere, promised } from '../support/made-up-template.ts';
import {
  countingEngine,
  newBase,
  newProject,
  projectImages,
  resolveApproved,
  writeProject,
} from '../support/projects.ts';
import { fullSizes, when } from '../support/selection.ts';

const { connection, image: testImage } = testEngine();
const engine = dockerImageEngine(connection);

/** What a shell says in a container of the image, whatever the image itself would run. */
async function exitIn(reference: string, script: string): Promise<number> {
  const id = await runContainer(testEngine(), script, { image: reference });
  return await waitForExit(connection, id, { timeoutMs: 30_000 });
}

describe('the image of a project', () => {
  it('[O1] [R2] is built once, found 100 times, and built again when an input changes, which `why` names', {
    timeout: 120_000,
  }, async () => {
    const counted = countingEngine();
    const images = await projectImages({ engine: counted.engine });
    const folder = await newProject({
      'Dockerfile.sallyport': `FROM ${testImage}\nUSER root\nARG V=1\nCOPY a.txt b.txt /\nRUN echo $V > /v\n`,
      'a.txt': 'a',
      'b.txt': 'b',
    });
    expect(await images.why({ folder })).toMatchObject({ isThere: false });
    const events: ProgressEvent[] = [];
    const first = await resolveApproved(images, folder, { events });
    expect(first).toMatchObject({
      how: 'built',
      reference: `sallyport-${basename(folder)}:${first.fingerprint.slice(0, 12)}`,
    });
    const steps = events.filter(({ step }) => step === 'build').map(({ message }) => message);
    expect(steps).toContainEqual(expect.stringMatching(/^4\/5 COPY a\.txt b\.txt \/ \(\d+\.\d s\)$/));
    expect(await exitIn(first.reference, 'test "$(cat /a.txt /b.txt)" = ab && test "$(cat /v)" = 1')).toBe(0);
    expect((await engine.find(first.reference))?.labels[label.inputs]).toBe(first.fingerprint);

    for (let round = 0; round < 100; round++) {
      expect(await resolveApproved(images, folder)).toMatchObject({ how: 'present', id: first.id });
    }
    expect(counted.builds()).toBe(1);
    expect(await images.why({ folder })).toMatchObject({
      isThere: true,
      added: [],
      removed: [],
      changed: [],
    });

    await writeFile(join(folder, 'b.txt'), 'B');
    await writeFile(join(folder, 'c.txt'), 'c');
    const changed = { isThere: false, changed: ['file:b.txt'], added: ['file:c.txt'], removed: [] };
    expect(await images.why({ folder })).toMatchObject(changed);
    expect(await images.why({ folder, args: { V: '2' } })).toMatchObject({ added: ['arg:V', 'file:c.txt'] });
    const second = await resolveApproved(images, folder, { args: { V: '2' } });
    expect(second.how).toBe('built');
    expect(await exitIn(second.reference, 'test "$(cat /b.txt)" = B && test "$(cat /v)" = 2')).toBe(0);
    expect(counted.builds()).toBe(2);
  });

  it('[R2] has the same hash on another machine: another folder, another state, other times', async () => {
    const folder = await newProject({
      'Dockerfile.sallyport': `FROM ${testImage}\nUSER root\nCOPY . /x\n`,
      'd/a': 'a',
    });
    const elsewhere = join(await newFolder('own'), basename(folder));
    await cp(folder, elsewhere, { recursive: true });
    await utimes(join(elsewhere, 'd/a'), 1, 1);
    const [here, there] = await Promise.all([projectImages(), projectImages()]);
    const why = await here.why({ folder });
    expect((await there.why({ folder: elsewhere }))?.reference).toBe(why?.reference);
  });

  it('[R2] covers each base: by ARG, of a stage, and of COPY --from', async () => {
    const [one, two] = [await newBase(), await newBase('RUN echo two > /two')];
    const folder = await newProject({
      'Dockerfile.sallyport': `ARG BASE=${one.repository}\nFROM $BASE AS first\nUSER root\nRUN echo 1 > /one\nFROM ${testImage}\nUSER root\nCOPY --from=first /one /one\nCOPY --from=${two.reference} /two /two\n`,
    });
    const images = await projectImages();
    const made = await resolveApproved(images, folder);
    expect(await exitIn(made.reference, 'cat /one /two')).toBe(0);
    expect((await images.why({ folder }))?.changed).toEqual([]);
    // The same name, another image.
    const other = await newBase('RUN echo other > /two');
    await engine.tag(other.reference, two.repository, 'latest');
    expect((await images.why({ folder }))?.changed).toEqual([`base:${two.reference}`]);
  });

  it('[R2] covers the platform and porter, and `why` names them', async () => {
    const folder = await newProject({ 'Dockerfile.sallyport': `FROM ${testImage}\n` });
    const records = new ImageRecordFiles(await newFolder('own'));
    const images = await projectImages({ records });
    const { reference } = await resolveApproved(images, folder);
    expect(await images.why({ folder })).toMatchObject({ reference, changed: [], isThere: true });
    const newer = await projectImages({ records, porterVersion: '2' });
    expect(await newer.why({ folder })).toMatchObject({ changed: ['porter'], isThere: false });
    const elsewhere = { ...engine, architecture: async () => 'riscv64' };
    const ported = await projectImages({ records, engine: elsewhere });
    expect(await ported.why({ folder })).toMatchObject({ changed: ['platform'], isThere: false });
  });

  it('[R2] is built without a network where that is asked for, and with one else', async () => {
    const interfaces = 'ls /sys/class/net | tr "\\n" " "';
    const folder = await newProject({
      'Dockerfile.sallyport': `FROM ${testImage}\nUSER root\nRUN ${interfaces}\n`,
    });
    const records = new ImageRecordFiles(await newFolder('own'));
    const images = await projectImages({ records });
    const said = async (network: 'default' | 'none'): Promise<string> => {
      const approved = (await images.look({ folder, network }))?.approval;
      const made = await images.resolve({ folder, network, approved, rebuild: true }, { progress: () => {} });
      // By its id: the network is no input, so the second takes the name of the first.
      onTestFinished(() => engine.remove(made?.id ?? ''));
      return /Running in \w+\n+(.*lo.*)\n/.exec(records.readLog(folder) ?? '')?.[1]?.trim() ?? '';
    };
    expect(await said('none')).toBe('lo');
    expect((await said('default')).split(' ').length).toBeGreaterThan(1);
  });

  it('[R2] leaves out what .dockerignore names, with its negations, and its own Dockerfile', async () => {
    const folder = await newProject({
      'Dockerfile.sallyport': `FROM ${testImage}\nUSER root\nCOPY . /x/\n`,
      '.dockerignore': '*\n!keep\nkeep/not\n!.dockerignore-like\n',
      'keep/a': 'a',
      'keep/not': 'n',
      other: 'o',
    });
    const made = await resolveApproved(await projectImages(), folder);
    expect(await exitIn(made.reference, 'test "$(cd /x && find . -type f)" = ./keep/a')).toBe(0);
  });

  it('[R2] warns of a large context with the largest paths, and sends it in pieces', async () => {
    const folder = await newProject({
      'Dockerfile.sallyport': `FROM ${testImage}\nUSER root\nCOPY . /x/\n`,
      small: 's',
      'deep/big.bin': 'x'.repeat(3_000_000),
    });
    const events: ProgressEvent[] = [];
    const images = await projectImages({ largeContextBytes: 2_000_000 });
    const made = await resolveApproved(images, folder, { events });
    expect(events.find(({ step }) => step === 'warning')?.message).toContain('deep/big.bin (2.9 MiB)');
    expect(await exitIn(made.reference, 'test "$(wc -c < /x/deep/big.bin)" = 3000000')).toBe(0);
  });
});

when(fullSizes).describe('a context of more than 2 GiB', () => {
  it('[R2] is sent with a warning that names its largest file, and never whole in memory', {
    timeout: 600_000,
  }, async () => {
    const folder = await newProject({
      'Dockerfile.sallyport': `FROM ${testImage}\nUSER root\nCOPY small /tmp/\n`,
      small: 's',
      'data/big.bin': '',
    });
    await truncate(join(folder, 'data/big.bin'), 2 * 2 ** 30 + 1);
    const events: ProgressEvent[] = [];
    const peakKiB = (): number => process.resourceUsage().maxRSS;
    const before = peakKiB();
    const images = await projectImages();
    const made = await resolveApproved(images, folder, { events });
    expect(events.find(({ step }) => step === 'warning')?.message).toContain('data/big.bin (2.0 GiB)');
    expect(peakKiB() - before).toBeLessThan(512 * 1024);
    expect(await exitIn(made.reference, 'test "$(cat /tmp/small)" = s')).toBe(0);
    expect(await resolveApproved(images, folder)).toMatchObject({ how: 'present', id: made.id });
  });
});

describe('a Dockerfile that nobody approved', () => {
  it('[O1] is not built, and neither is one that changed after it was approved', async () => {
    const counted = countingEngine();
    const images = await projectImages({ engine: counted.engine });
    const folder = await newProject({
      'Dockerfile.sallyport': `FROM ${testImage}\nUSER root\nCOPY run.sh /\nRUN sh /run.sh\n`,
      'run.sh': 'true',
    });
    const options = { progress: () => {} };
    await expect(images.resolve({ folder }, options)).rejects.toMatchObject({ code: 'project_not_approved' });
    const approved = (await images.look({ folder }))?.approval;
    await writeFile(join(folder, 'run.sh'), 'echo evil');
    await expect(images.resolve({ folder, approved }, options)).rejects.toMatchObject({
      code: 'project_not_approved',
      message: expect.stringContaining('changed after it was approved'),
    });
    expect(counted.builds()).toBe(0);
  });

  it('[O1] is not built of files that change between the look and the build', async () => {
    const base = await newBase();
    const folder = await newProject({
      'Dockerfile.sallyport': `FROM ${base.reference}\nCOPY run.sh /\n`,
      'run.sh': 'true',
    });
    const images = await projectImages({
      engine: {
        ...engine,
        build: async (context, ...rest) => {
          await writeFile(join(folder, 'run.sh'), 'evil');
          return await engine.build(context, ...rest);
        },
      },
    });
    await expect(resolveApproved(images, folder)).rejects.toMatchObject({ code: 'copy_changed' });
    expect(await base.descendants()).toEqual([]);
  });
});

describe('a build that fails', () => {
  it.each([
    ['a command', 'RUN echo before\nRUN echo said; exit 3', 3, /exit 3|non-zero code: 3/],
    ['a missing file', 'RUN true\nCOPY missing.txt /', 3, /missing\.txt/],
    ['a wrong argument', 'RUN true\nEXPOSE none', 3, /port/i],
  ])('[R2] says the line of %s and leaves no image of any step', async (_what, rest, line, words) => {
    const base = await newBase();
    const folder = await newProject({ 'Dockerfile.sallyport': `FROM ${base.reference}\n${rest}\n` });
    const images = await projectImages();
    const failure = resolveApproved(images, folder);
    await expect(failure).rejects.toMatchObject({ code: 'image_build_failed', details: { line } });
    await expect(failure).rejects.toThrow(words);
    expect(await base.descendants()).toEqual([]);
    expect((await images.why({ folder }))?.isThere).toBe(false);
  });

  it('[R2] keeps the output of the last build', async () => {
    const records = new ImageRecordFiles(await newFolder('own'));
    const folder = await newProject({
      'Dockerfile.sallyport': `FROM ${testImage}\nUSER root\nRUN echo the-words; exit 3\n`,
    });
    await expect(resolveApproved(await projectImages({ records }), folder)).rejects.toThrow();
    expect(records.readLog(folder)).toContain('\nthe-words\n');
  });

  it('[R2] is told when a base is nowhere', async () => {
    const folder = await newProject({ 'Dockerfile.sallyport': 'FROM 127.0.0.1:1/nothing\n' });
    await expect(resolveApproved(await projectImages(), folder)).rejects.toMatchObject({
      code: 'image_pull_failed',
    });
  });

  it('[R2] leaves nothing when it is cancelled in the middle', async () => {
    const base = await newBase();
    const folder = await newProject({
      'Dockerfile.sallyport': `FROM ${base.reference}\nRUN true\nRUN sleep 1000\n`,
    });
    const abort = new AbortController();
    const onEvent = ({ message }: ProgressEvent): void => {
      if (message.startsWith('3/3')) abort.abort();
    };
    const images = await projectImages();
    await expect(resolveApproved(images, folder, { signal: abort.signal, onEvent })).rejects.toMatchObject({
      code: 'cancelled',
    });
    // The next one waits for its turn, which the first gives back when it has cleared up.
    await writeProject(folder, { 'Dockerfile.sallyport': `FROM ${base.reference}\nRUN true\nRUN true\n` });
    await resolveApproved(images, folder);
    const containers = await connection.json<unknown[]>({
      method: 'GET',
      path: '/containers/json',
      query: { all: true, filters: JSON.stringify({ ancestor: [base.reference] }) },
    });
    expect(containers).toEqual([]);
  });
});

describe('a build whose cache loses an image meanwhile', () => {
  const lost = `unable to find image "sha256:${'0'.repeat(64)}"`;

  it('[R2] is done once more without the cache, and says so', async () => {
    const between = await engineWithFailingBuild(lost);
    const records = new ImageRecordFiles(await newFolder('own'));
    const images = await projectImages({ engine: dockerImageEngine(between.connection), records });
    const folder = await newProject({
      'Dockerfile.sallyport': `FROM ${testImage}\nCOPY a /tmp/a\n`,
      a: 'sent twice',
    });
    const events: ProgressEvent[] = [];
    const made = await resolveApproved(images, folder, { events });
    expect(await exitIn(made.reference, 'test "$(cat /tmp/a)" = "sent twice"')).toBe(0);
    expect(between.builds.map((query) => query.get('nocache'))).toEqual(['0', '1']);
    const said = /removed meanwhile; building once more without the cache/;
    expect(events.map(({ message }) => message)).toContainEqual(expect.stringMatching(said));
    expect(records.readLog(folder)).toMatch(said);
  });

  it('[R1] the same is true of our own images', async () => {
    const between = await engineWithFailingBuild(lost);
    const engineBetween = dockerImageEngine(between.connection);
    const recipe = await readRecipe('test', await engine.architecture(), testImage);
    const labels = testEngine().labels();
    const progress = (): void => {};
    const id = await buildOn(testImage, recipe, {
      engine: engineBetween,
      progress,
      labels,
      needsNetwork: false,
    });
    onTestFinished(() => engine.remove(id));
    expect(between.builds.map((query) => query.get('nocache'))).toEqual(['0', '1']);
  });
});

describe('builds of one fingerprint at the same time', () => {
  const slow = (): Promise<string> =>
    newProject({
      'Dockerfile.sallyport': `FROM ${testImage}\nUSER root\nRUN sleep 1 && echo done > /done\n`,
    });

  it('[R2] are one build, for two clients of a daemon and for two daemons', async () => {
    const counted = countingEngine();
    const [one, other] = await Promise.all([
      projectImages({ engine: counted.engine }),
      projectImages({ engine: counted.engine }),
    ]);
    const folder = await slow();
    const all = await Promise.all([one, one, other].map((images) => resolveApproved(images, folder)));
    expect(new Set(all.map(({ id }) => id)).size).toBe(1);
    expect(counted.builds()).toBe(1);
  });

  it('[R2] go on when one of those who wait goes away', async () => {
    const counted = countingEngine();
    const images = await projectImages({ engine: counted.engine });
    const folder = await slow();
    const abort = new AbortController();
    const first = resolveApproved(images, folder, {
      signal: abort.signal,
      onEvent: ({ message }) => message.startsWith('3/3') && abort.abort(),
    });
    const second = resolveApproved(images, folder);
    await expect(first).rejects.toMatchObject({ code: 'cancelled' });
    expect((await second).how).toBe('built');
    expect(counted.builds()).toBe(1);
  });

  it('[R1] are one build for our own images too', async () => {
    const counted = countingEngine();
    const { reference: baseReference } = await newBase();
    const make = () =>
      ensureImage('test', {
        engine: counted.engine,
        progress: () => {},
        consent: async () => false,
        baseReference,
        labels: testEngine().labels(),
        turns: dockerBuildTurns(connection, processHolder()),
      });
    const both = await Promise.all([make(), make()]);
    onTestFinished(() => engine.remove(both[0].reference));
    expect(both.map(({ how }) => how).sort()).toEqual(['present', 'pulled']);
    expect(both[0].id).toBe(both[1].id);
    expect(counted.builds()).toBe(1);
  });

  it('[R1] are one build for a template too', async () => {
    const counted = countingEngine();
    const place = await madeUpHere({ install: `cp /usr/bin/find ${promised} && chmod 755 ${promised}` });
    const make = () =>
      ensureTemplate(place, {
        engine: counted.engine,
        progress: () => {},
        consent: async () => false,
        offline: true,
        labels: testEngine().labels(),
        turns: dockerBuildTurns(connection, processHolder()),
      });
    const both = await Promise.all([make(), make()]);
    onTestFinished(async () => {
      for (const tag of (await engine.find(both[0].reference))?.tags ?? []) await engine.remove(tag);
    });
    expect(both.map(({ how }) => how).sort()).toEqual(['built', 'present']);
    expect(both[0].id).toBe(both[1].id);
    expect(counted.builds()).toBe(1);
  });

  it('[R2] take the turn of a process that died', async () => {
    const name = `sallyport-build-test-${process.pid}`;
    const [machine] = processHolder().self.split(' ');
    const labels = testEngine().labels({ 'dev.sallyport.holder': `${machine} 999999999 gone mark` });
    await createVolume(connection, { name, labels });
    onTestFinished(() => removeVolume(connection, name));
    const leave = await dockerBuildTurns(connection, processHolder()).take(name);
    await leave();
  });
});

describe('what is remembered of builds', () => {
  it('[R3] is as if it were not there when its file is broken, and the image is found again', async () => {
    const state = await newFolder('own');
    const records = new ImageRecordFiles(state);
    const folder = await newProject({
      'Dockerfile.sallyport': `FROM ${testImage}\nUSER root\nCOPY a /\n`,
      a: 'a',
    });
    const first = await resolveApproved(await projectImages({ records }), folder);
    const { imageId } = records.findBuild(folder) ?? {};
    expect(imageId).toBe(first.id);
    const kept = join(state, 'images', await onlyFolder(join(state, 'images')));
    expect(JSON.parse(await readFile(join(kept, 'build.json'), 'utf8'))).toMatchObject({ imageId });
    for (const name of ['build.json', 'digests.json']) await writeFile(join(kept, name), '{"half');
    const fresh = new ImageRecordFiles(state);
    expect(fresh.findBuild(folder)).toBeUndefined();
    expect(await resolveApproved(await projectImages({ records: fresh }), folder)).toMatchObject({
      how: 'present',
      id: first.id,
    });
  });
});

async function onlyFolder(path: string): Promise<string> {
  return (await readdir(path, { withFileTypes: true })).find((entry) => entry.isDirectory())?.name ?? '';
}
