/** Sandboxes without a daemon around them: the real engine, a real store in a folder of the test's own. */

import { mkdtemp, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { dockerBoxEngine } from '../../src/engines/docker/box-engine.ts';
import { dockerImageEngine } from '../../src/engines/docker/image-engine.ts';
import { EngineBoxImages } from '../../src/images/box-images.ts';
import { ownerId } from '../../src/lib/owner.ts';
import { readPorterBinary } from '../../src/porter/binary.ts';
import type { BoxRequest } from '../../src/protocol/box.ts';
import { type CreateInput, createBody, type ExecInput, execBody } from '../../src/protocol/requests.ts';
import type { BoxExec } from '../../src/sandboxes/box-exec.ts';
import type { Sandbox } from '../../src/sandboxes/sandbox.ts';
import { Sandboxes } from '../../src/sandboxes/sandboxes.ts';
import type { SandboxWorld } from '../../src/sandboxes/world.ts';
import { openStore } from '../../src/store/open-store.ts';
import { testEngine } from './engine.ts';

export interface TestSandboxes {
  readonly sandboxes: Sandboxes;
  readonly world: SandboxWorld;
  readonly stateDir: string;
  /** What went wrong where nobody could be told. */
  readonly reports: string[];
  /** Ready, of the test image. */
  readonly make: (more?: CreateInput) => Promise<Sandbox>;
  /** As a daemon that was killed: nothing is stopped, nothing is written. */
  readonly abandon: () => Promise<void>;
}

export async function openSandboxes(
  options: {
    readonly stateDir?: string;
    readonly clientAbsenceMs?: number;
    /** Of the user; absent: of the one who runs the test. */
    readonly home?: string;
    readonly sshAgentPath?: string;
    /** An engine that makes something else than it was asked for. */
    readonly tamper?: (box: BoxRequest) => BoxRequest;
    /** What the world does between two steps. */
    readonly checkpoint?: (name: string) => void;
  } = {},
): Promise<TestSandboxes> {
  const {
    stateDir,
    clientAbsenceMs = 10_000,
    home = homedir(),
    sshAgentPath,
    tamper = (box) => box,
    checkpoint = () => {},
  } = options;
  const folder = stateDir ?? (await mkdtemp(join(tmpdir(), 'sallyport-sandboxes-')));
  const { connection, image, endpoint } = testEngine();
  const engine = dockerBoxEngine(connection, readPorterBinary);
  const images = new EngineBoxImages(dockerImageEngine(connection));
  const store = await openStore(folder);
  const uid = process.getuid?.() ?? -1;
  const owner = ownerId(uid, folder);
  const reports: string[] = [];
  const world: SandboxWorld = {
    engine: { ...engine, create: (box, signal) => engine.create(tamper(box), signal) },
    images,
    store,
    owner,
    now: () => new Date().toISOString(),
    checkpoint,
    sshAgent: { path: sshAgentPath, uid },
    clientAbsenceMs,
    report: (what, error) => void reports.push(`${what}: ${error instanceof Error ? error.message : error}`),
  };
  const sandboxes = new Sandboxes(world, {
    host: { uid, gid: process.getgid?.() ?? -1, platform: process.platform },
    home,
    places: {
      platform: process.platform,
      homes: [homedir(), home],
      stateDirs: [folder],
      engineSockets: [endpoint.replace('unix://', '')],
    },
  });
  let open = true;
  const abandon = async (): Promise<void> => {
    if (!open) return;
    open = false;
    await sandboxes.shutdown(true);
    await store.close();
  };
  onTestFinished(async () => {
    await abandon();
    for (const box of await engine.list(owner)) await engine.remove(box.id);
    if (stateDir === undefined) await rm(folder, { recursive: true, force: true });
  });
  await sandboxes.recover();
  await sandboxes.recovered();
  return {
    sandboxes,
    world,
    stateDir: folder,
    reports,
    make: async (more = {}) => {
      const sandbox = await sandboxes.create(createBody.parse({ ...more, spec: { image, ...more.spec } }));
      await sandbox.ready();
      return sandbox;
    },
    abandon,
  };
}

export async function runInSandbox(sandbox: Sandbox, argv: readonly string[], more: Partial<ExecInput> = {}) {
  const exec = await startInSandbox(sandbox, argv, more);
  return await exec.result();
}

export async function startInSandbox(
  sandbox: Sandbox,
  argv: readonly string[],
  more: Partial<ExecInput> = {},
): Promise<BoxExec> {
  return await sandbox.exec(execBody.parse({ argv, ...more }));
}
