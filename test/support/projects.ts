/** Folders with a Dockerfile of ours, and what builds them: the product's own parts on the run's engine, with state of the test's own. */

import { randomBytes } from 'node:crypto';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { dockerBuildTurns } from '../../src/engines/docker/build-turns.ts';
import { dockerImageEngine } from '../../src/engines/docker/image-engine.ts';
import { ProjectImages, type ProjectImagesDeps } from '../../src/images/project/project-images.ts';
import { RegistryCredentials } from '../../src/images/registry-credentials.ts';
import type { ProgressEvent } from '../../src/lib/progress.ts';
import { isSallyportError } from '../../src/protocol/errors.ts';
import { label } from '../../src/protocol/labels.ts';
import type { ImageEngine } from '../../src/sandboxes/ports.ts';
import { ImageRecordFiles } from '../../src/store/image-records.ts';
import { processHolder } from '../../src/store/process-identity.ts';
import { testEngine } from './engine.ts';
import { tarStream } from './tar.ts';

export type Files = Readonly<Record<string, string>>;

/** Its name is the last part of its path, and no other test has it. */
export async function newProject(files: Files): Promise<string> {
  const folder = join(await newHome(), `p${randomBytes(5).toString('hex')}`);
  await writeProject(folder, files);
  return folder;
}

async function newHome(): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'sallyport-project-'));
  onTestFinished(() => rm(home, { recursive: true, force: true }));
  await chmod(home, 0o755);
  return home;
}

export async function writeProject(folder: string, files: Files): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  }
}

/** An engine that counts the builds it is asked for. */
export function countingEngine(): { readonly engine: ImageEngine; readonly builds: () => number } {
  const real = dockerImageEngine(testEngine().connection);
  let builds = 0;
  const engine: ImageEngine = {
    ...real,
    build: async (...args) => {
      builds++;
      return await real.build(...args);
    },
  };
  return { engine, builds: () => builds };
}

/** As one daemon has them. What is built carries the run's label; `image` removes one at the end of the test. */
export async function projectImages(more: Partial<ProjectImagesDeps> = {}): Promise<ProjectImages> {
  const { connection, labels } = testEngine();
  return new ProjectImages({
    engine: dockerImageEngine(connection),
    records: new ImageRecordFiles(await newHome()),
    turns: dockerBuildTurns(connection, processHolder()),
    credentials: new RegistryCredentials('/nowhere'),
    porterVersion: '1',
    now: () => new Date(),
    labels: labels(),
    ...more,
  });
}

export interface Approving {
  readonly args?: Readonly<Record<string, string>>;
  readonly rebuild?: boolean;
  readonly events?: ProgressEvent[];
  readonly onEvent?: (event: ProgressEvent) => void;
  readonly notes?: string[];
  readonly signal?: AbortSignal;
}

/** Approves whatever is there and resolves it; what comes of it is gone after the test. */
export async function resolveApproved(images: ProjectImages, folder: string, options: Approving = {}) {
  const { args, rebuild = false, events = [], notes = [], signal, onEvent = () => {} } = options;
  const request = { folder, ...(args === undefined ? {} : { args }) };
  const approved = (await images.look(request))?.approval;
  const resolved = await images.resolve(
    { ...request, approved, rebuild },
    {
      progress: (event) => {
        events.push(event);
        onEvent(event);
      },
      note: (code) => notes.push(code),
      ...(signal === undefined ? {} : { signal }),
    },
  );
  if (resolved === undefined) throw new Error(`${folder} has no Dockerfile`);
  if (resolved.how === 'built')
    onTestFinished(() => dockerImageEngine(testEngine().connection).remove(resolved.reference));
  return resolved;
}

/** A base of the test's own, whose mark every image inherits that is built on it, also of single steps. */
export async function newBase(dockerfile = ''): Promise<{
  readonly reference: string;
  readonly repository: string;
  /** All images with the mark but the base itself. */
  readonly descendants: () => Promise<readonly string[]>;
}> {
  const { connection, image, labels } = testEngine();
  const engine = dockerImageEngine(connection);
  const mark = randomBytes(8).toString('hex');
  const repository = `sallyport-test-base-${mark}`;
  const marks = Object.entries(labels({ [markLabel]: mark }))
    .map((pair) => pair.join('='))
    .join(' ');
  const id = await engine.build(
    // One step for all labels: through the API each is one of its own. The first: a step that others share goes with theirs.
    await tarStream({ Dockerfile: `FROM ${image}\nLABEL ${marks}\nUSER root\n${dockerfile}\n` }),
    // Without the cache: an engine that looks through it fails when another test removes an image of the same base meanwhile.
    { dockerfile: 'Dockerfile', buildArgs: {}, labels: {}, noCache: true },
    { progress: () => {} },
  );
  await engine.tag(id, repository, 'latest');
  onTestFinished(async () => {
    await engine.remove(`${repository}:latest`);
    await removeMarked(mark);
  });
  // Its own steps after the mark.
  const before = new Set(await marked(mark));
  return {
    reference: `${repository}:latest`,
    repository,
    descendants: async () => (await marked(mark)).filter((each) => !before.has(each)),
  };
}

const markLabel = `${label.test}.base`;

/** Stages and earlier images of a name have none themselves; children come before what they are made of. */
async function removeMarked(mark: string): Promise<void> {
  const engine = dockerImageEngine(testEngine().connection);
  for (let left = await marked(mark); left.length > 0; ) {
    for (const id of left) {
      await engine.remove(id).catch((error: unknown) => {
        if (!isSallyportError(error, 'engine_conflict')) throw error;
      });
    }
    const now = await marked(mark);
    if (now.length === left.length) throw new Error(`images of ${mark} are still in use`);
    left = now;
  }
}

async function marked(mark: string): Promise<readonly string[]> {
  const rows = await testEngine().connection.json<{ Id: string }[]>({
    method: 'GET',
    path: '/images/json',
    query: { all: true, filters: JSON.stringify({ label: [`${markLabel}=${mark}`] }) },
  });
  return rows.map(({ Id }) => Id);
}
