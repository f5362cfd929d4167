/** Sandboxes without a daemon around them: the real engine, a real store in a folder of the test's own. */

import { mkdtemp, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { CloneFolders } from '../../src/agents/git/clone-folders.ts';
import { gitEnvironment } from '../../src/agents/git/config.ts';
import { bubblewrapParts } from '../../src/daemon/engine-parts.ts';
import { dockerBoxEngine } from '../../src/engines/docker/box-engine.ts';
import { dockerImageEngine } from '../../src/engines/docker/image-engine.ts';
import { dockerServiceEngine } from '../../src/engines/docker/service-engine.ts';
import type { EngineConnection } from '../../src/engines/docker/wire/connection.ts';
import type { GateSecrets } from '../../src/gate/box-credentials.ts';
import { EgressGate } from '../../src/gate/gate.ts';
import type { TorClient } from '../../src/gate/tor/tor-client.ts';
import { EngineBoxImages } from '../../src/images/box-images.ts';
import { ownerId } from '../../src/lib/owner.ts';
import type { DiskTimes } from '../../src/policy/disk-limit.ts';
import { readPorterBinary } from '../../src/porter/binary.ts';
import type { BoxRequest } from '../../src/protocol/box.ts';
import { type CreateInput, createBody, type ExecInput, execBody } from '../../src/protocol/requests.ts';
import type { BoxExec } from '../../src/sandboxes/box-exec.ts';
import type { BoxDoor } from '../../src/sandboxes/ports.ts';
import type { Sandbox } from '../../src/sandboxes/sandbox.ts';
import { Sandboxes } from '../../src/sandboxes/sandboxes.ts';
import type { SandboxWorld } from '../../src/sandboxes/world.ts';
import { GateKeyFiles } from '../../src/store/gate-keys.ts';
import { openStore } from '../../src/store/open-store.ts';
import { testEngine } from './engine.ts';
import { type EngineUnderTest, engineUnderTest } from './engine-under-test.ts';
import { removeOwned } from './owned-objects.ts';

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
    readonly overduePatienceMs?: number;
    /** Of the user; absent: of the one who runs the test. */
    readonly home?: string;
    readonly sshAgentPath?: string;
    /** Whom the gate asks for names. */
    readonly dnsServers?: readonly string[];
    /** What the gate may put into requests. */
    readonly secrets?: Omit<GateSecrets, 'keys'>;
    /** For those that leave by it. */
    readonly tor?: TorClient;
    /** An engine that makes something else than it was asked for. */
    readonly tamper?: (box: BoxRequest) => BoxRequest;
    /** What happens to a box between the relay that was opened to it and the first word on that. */
    readonly onRelay?: (containerId: string) => Promise<void>;
    /** Somebody else answers in the place of porter, behind a relay. */
    readonly relay?: (open: () => Promise<BoxDoor>) => Promise<BoxDoor>;
    /** What the world does between two steps. */
    readonly checkpoint?: (name: string) => void;
    /** What runs this; absent: nothing that a workspace of a test contains. */
    readonly programs?: readonly string[];
    /** Absent: the one of this run. */
    readonly on?: EngineUnderTest;
    /** How the disk is watched; `isHere: false`: as if it were another machine's. */
    readonly disk?: { readonly times: DiskTimes; readonly isHere: boolean };
    /** Of a test's own; absent: the one of this run. */
    readonly connection?: EngineConnection;
  } = {},
): Promise<TestSandboxes> {
  const {
    stateDir,
    // There are no clients here, and on a busy machine a command may take long: only a test of absence sets it.
    clientAbsenceMs = 900_000,
    overduePatienceMs = 60_000,
    home = homedir(),
    sshAgentPath,
    dnsServers,
    secrets,
    tor,
    tamper = (box) => box,
    onRelay = async () => {},
    relay = (open) => open(),
    checkpoint = () => {},
    programs = [],
    on = engineUnderTest,
    disk,
  } = options;
  const folder = stateDir ?? (await mkdtemp(join(tmpdir(), 'sallyport-sandboxes-')));
  const { image, ...shared } = testEngine();
  const { connection = shared.connection } = options;
  const { endpoint } = connection;
  const uid = process.getuid?.() ?? -1;
  const parts =
    on === 'bubblewrap'
      ? await bubblewrapParts({ stateDir: folder, uid })
      : {
          engine: dockerBoxEngine(connection, readPorterBinary),
          images: new EngineBoxImages(dockerImageEngine(connection)),
          services: dockerServiceEngine(connection),
        };
  const { engine, images, services } = parts;
  const store = await openStore(folder);
  const owner = ownerId(uid, folder);
  const reports: string[] = [];
  const world: SandboxWorld = {
    engine: {
      ...engine,
      create: (box, signal, note) => engine.create(tamper(box), signal, note),
      ...(disk?.isHere === false ? { diskFolder: async () => undefined } : {}),
      openRelay: async (id, signal) => {
        const door = await relay(() => engine.openRelay(id, signal));
        await onRelay(id);
        return door;
      },
    },
    services,
    images,
    store,
    owner,
    now: () => new Date().toISOString(),
    checkpoint,
    gate: new EgressGate({
      ...(dnsServers === undefined ? {} : { dnsServers }),
      ...(tor === undefined ? {} : { tor }),
      ...(secrets === undefined ? {} : { secrets: { ...secrets, keys: new GateKeyFiles(folder) } }),
    }),
    clones: await CloneFolders.open(join(folder, 'clones'), gitEnvironment()),
    sshAgent: { path: sshAgentPath, uid },
    firstLiveNote: async () => undefined,
    clientAbsenceMs,
    overduePatienceMs,
    report: (what, error) => void reports.push(`${what}: ${error instanceof Error ? error.message : error}`),
  };
  const sandboxes = new Sandboxes(world, {
    host: { uid, gid: process.getgid?.() ?? -1, platform: process.platform },
    home,
    definedAgents: () => [],
    ...(disk === undefined ? {} : { diskTimes: disk.times }),
    places: {
      platform: process.platform,
      homes: [homedir(), home],
      stateDirs: [folder],
      engineSockets: [endpoint.replace('unix://', '')],
      programs,
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
    if (on === 'docker') await removeOwned(connection, owner);
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
      const sandbox = await sandboxes.create(
        createBody.parse({ ...more, spec: { ...(on === 'docker' ? { image } : {}), ...more.spec } }),
      );
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
