/**
 * Sandboxes by bubblewrap, behind the port that `sandboxes/` declares: for machines without a container engine.
 *
 * A box is a folder (`box-folder.ts`) and, while it runs, bubblewrap with porter as the first process of its own pid namespace.
 * Both outlive the daemon. docs/bubblewrap.md says what this isolates, and what it does not.
 */

import { existsSync } from 'node:fs';
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { deletedFilesUse } from '../../lib/deleted-files.ts';
import { folderUse } from '../../lib/folder-use.ts';
import { namespaceProcesses, writtenBytes } from '../../lib/namespace-processes.ts';
import { type BoxRequest, hostPlacesOf } from '../../protocol/box.ts';
import { SallyportError } from '../../protocol/errors.ts';
import { label } from '../../protocol/labels.ts';
import type {
  BoxEngine,
  BoxHome,
  BoxState,
  DiskHold,
  DiskUse,
  DiskUseOptions,
  EngineFacts,
  KnownBox,
} from '../../sandboxes/ports.ts';
import { boxLine, countsProcesses, dataContents, dataFiles, ownParts } from './box-arguments.ts';
import { openDoor } from './box-door.ts';
import { BoxEvents } from './box-events.ts';
import { BoxFolders, type KeptBox, provide } from './box-folder.ts';
import { type BoxStatusFile, isOfBox, killBox, readStatus, sendSignal, untilGone } from './box-process.ts';
import { boxStats } from './box-stats.ts';
import { type BubblewrapProgram, findBubblewrap } from './bubblewrap-program.ts';
import { type BoxCgroups, findCgroups } from './cgroups.ts';
import { EtcCopies } from './etc-copies.ts';
import { requirePlainPlaces } from './mount-places.ts';
import { pathsOfOthers } from './others-boxes.ts';
import { startBox } from './start-box.ts';
import { isOfSystem, lookAtSystem, type SystemPlaces } from './system-places.ts';
import { weaknesses } from './weaknesses.ts';

export interface BubblewrapParts {
  /** Where its boxes are kept. */
  readonly folder: string;
  readonly isRoot: boolean;
  readonly porterPath: string;
  readonly keeperPath: string;
  /** What an image for a user was asked to have, by the name that it got. */
  readonly homeOf: (image: string) => BoxHome;
  /** Passed between two steps; a test lets the process die there. */
  readonly checkpoint: (name: string) => void;
}

/** What a kill looks like to whoever waits; also what is said of a box whose bubblewrap did not live to tell. */
const killedCode = 137;

export function bubblewrapBoxEngine(parts: BubblewrapParts): BoxEngine {
  const engine = new BubblewrapEngine(parts);
  return {
    family: 'bubblewrap',
    facts: () => engine.facts(),
    // It is copied into each box.
    providePorter: async () => 'porter',
    sweep: () => engine.sweep(),
    create: (box) => engine.create(box),
    attach: async (id) => {
      throw new SallyportError('engine_conflict', `box ${id} has no stream before it runs`, {
        details: { box: id },
      });
    },
    // Its only way in is the socket that it listens on.
    tryAttach: async () => undefined,
    openRelay: (id) => engine.openRelay(id),
    start: (id) => engine.start(id),
    stop: (id, graceMs) => engine.stop(id, graceMs),
    pause: (id) => engine.pause(id),
    unpause: (id) => engine.unpause(id),
    find: (id) => engine.find(id),
    state: (id) => engine.state(id),
    list: (owner) => engine.list(owner),
    boundPaths: () => engine.boundPaths(),
    stats: (id) => engine.stats(id),
    events: (owner, signal) => engine.events(owner, signal),
    remove: (id) => engine.remove(id),
    diskFolder: async () => parts.folder,
    diskHold: (id) => engine.diskHold(id),
    diskUse: (id, options) => engine.diskUse(id, options),
    diskWritten: (id) => engine.diskWritten(id),
    volumes: async () => [],
    removeVolume: async () => true,
  };
}

interface Machine {
  readonly program: BubblewrapProgram;
  readonly cgroups: BoxCgroups;
  readonly system: SystemPlaces;
}

class BubblewrapEngine {
  readonly #parts: BubblewrapParts;
  readonly #folders: BoxFolders;
  readonly #events = new BoxEvents();
  readonly #etc: EtcCopies;
  #machine: Promise<Machine> | undefined;

  constructor(parts: BubblewrapParts) {
    this.#parts = parts;
    this.#folders = new BoxFolders(parts.folder);
    this.#etc = new EtcCopies(parts.folder, dataFiles.slice(1), parts.checkpoint);
  }

  async facts(): Promise<EngineFacts> {
    const { program, cgroups } = await this.#machineOnce();
    return {
      name: 'bubblewrap',
      version: program.version,
      endpoint: program.path,
      runtimes: ['bwrap'],
      defaultRuntime: 'bwrap',
      rootless: false,
      limits: {
        memory: cgroups.available,
        cpus: cgroups.available,
        pids: cgroups.available || countsProcesses(),
      },
      weaker: weaknesses({
        isRoot: this.#parts.isRoot,
        cgroups: cgroups.available,
        countsProcesses: countsProcesses(),
      }),
    };
  }

  /** The folder is one daemon's: what is unfinished before it has begun anything will never be finished. */
  async sweep(): Promise<number> {
    return (await this.#folders.removeUnfinished()) + (await this.#etc.removeDrafts());
  }

  async create(box: BoxRequest): Promise<string> {
    const home = this.#parts.homeOf(box.image);
    requirePossible(box, home);
    // SECURITY: once, before anything ran in there. Later a link could be in the way, and lead root out of the folder.
    const { checkpoint } = this.#parts;
    return await this.#folders.add({ box, home, createdMs: Date.now() }, checkpoint, async (folder) => {
      for (const { from, kind } of ownParts(box, home)) {
        await provide(join(folder, from), kind, this.#parts.isRoot ? box.user : undefined);
      }
    });
  }

  async openRelay(id: string) {
    return await openDoor(this.#folders.pathOf(id), id);
  }

  async start(id: string): Promise<void> {
    const kept = await this.#folders.get(id);
    if ((await this.#stateOf(id)).running) return;
    const { program, cgroups, system } = await this.#machineOnce();
    const folder = this.#folders.pathOf(id);
    requirePlainPlaces({ id, folder }, ownParts(kept.box, kept.home), kept.box.mounts);
    await this.#provideData(id, kept);
    this.#parts.checkpoint('bubblewrap.data');
    await cgroups.make(id, kept.box.limits);
    this.#parts.checkpoint('bubblewrap.cgroups');
    const line = boxLine(kept.box, kept.home, {
      id,
      folder,
      isRoot: this.#parts.isRoot,
      system,
      etc: await this.#etc.provide(system.configuration),
      cgroups: cgroups.groupsOf(id),
      countsProcesses: !cgroups.available && countsProcesses(),
    });
    try {
      const programs = { keeper: this.#parts.keeperPath, bubblewrap: program.path };
      await startBox(line, programs, { id, folder });
    } catch (error) {
      await this.#kill(id);
      throw error;
    }
    this.#events.follow(id, this.#folders.pathOf(id, 'status'));
    this.#events.tell({ boxId: id, kind: 'started' });
  }

  async stop(id: string, graceMs: number): Promise<void> {
    if ((await this.#folders.find(id)) === undefined) return;
    const { cgroups } = await this.#machineOnce();
    if (await cgroups.isFrozen(id)) await cgroups.thaw(id);
    const { firstPid } = await this.#status(id);
    if (firstPid !== undefined && graceMs > 0 && (await isOfBox(firstPid, id))) {
      sendSignal(firstPid, 'SIGTERM');
      await untilGone([firstPid], id, graceMs);
    }
    await this.#kill(id);
  }

  async pause(id: string): Promise<void> {
    await this.#requireRunning(id);
    await (await this.#machineOnce()).cgroups.freeze(id);
    this.#events.tell({ boxId: id, kind: 'paused' });
  }

  async unpause(id: string): Promise<void> {
    await (await this.#machineOnce()).cgroups.thaw(id);
    this.#events.tell({ boxId: id, kind: 'resumed' });
  }

  async find(id: string): Promise<BoxState | undefined> {
    return (await this.#folders.find(id)) === undefined ? undefined : await this.#stateOf(id);
  }

  async state(id: string): Promise<BoxState> {
    await this.#folders.get(id);
    return await this.#stateOf(id);
  }

  async list(owner: string): Promise<readonly KnownBox[]> {
    const found: KnownBox[] = [];
    for (const id of await this.#folders.ids()) {
      const kept = await this.#folders.find(id);
      if (kept === undefined) continue;
      const { labels } = kept.box;
      if (labels[label.owner] !== owner) continue;
      found.push({ id, labels, status: (await this.#stateOf(id)).status, createdMs: kept.createdMs });
    }
    return found;
  }

  async boundPaths(): Promise<ReadonlySet<string>> {
    const paths = new Set(await pathsOfOthers(this.#parts.folder));
    for (const id of await this.#folders.ids()) {
      const kept = await this.#folders.find(id);
      if (kept === undefined || (await this.#stateOf(id)).status === 'stopped') continue;
      for (const path of hostPlacesOf(kept.box.mounts)) paths.add(path);
    }
    return paths;
  }

  async stats(id: string) {
    const { box } = await this.#folders.get(id);
    const firstPid = await this.#requireRunning(id);
    const { cgroups } = await this.#machineOnce();
    return await boxStats(firstPid, cgroups.available ? box.limits.memoryBytes : totalmem());
  }

  async diskHold(id: string): Promise<DiskHold | undefined> {
    return (await this.#folders.find(id)) === undefined ? undefined : { hasVolumes: false };
  }

  /** `root` holds everything that the box writes and keeps. A box that may keep nothing has none. */
  async diskUse(id: string, options: DiskUseOptions): Promise<DiskUse> {
    const root = this.#folders.pathOf(id, 'root');
    if (!existsSync(root)) return { amount: 0, isComplete: true, hasDeleted: true };
    const named = await folderUse(root, options);
    const firstPid = await this.#runningPid(id);
    if (firstPid === undefined) return { ...named, hasDeleted: true };
    const pids = await namespaceProcesses(firstPid);
    if (pids === undefined) return { ...named, hasDeleted: false };
    const { box } = await this.#folders.get(id);
    const except = box.mounts.map(({ target }) => target);
    const { amount, isComplete } = await deletedFilesUse({ pids, on: [root], except, ...options });
    return { ...named, amount: named.amount + amount, hasDeleted: isComplete };
  }

  async diskWritten(id: string): Promise<number | undefined> {
    const firstPid = await this.#runningPid(id);
    const pids = firstPid === undefined ? undefined : await namespaceProcesses(firstPid);
    return pids === undefined ? undefined : await writtenBytes(pids);
  }

  async *events(owner: string, signal: AbortSignal) {
    for (const { id, status } of await this.list(owner)) {
      if (status === 'running' || status === 'paused')
        this.#events.follow(id, this.#folders.pathOf(id, 'status'));
    }
    await mkdir(this.#parts.folder, { recursive: true, mode: 0o700 });
    yield* this.#events.stream(this.#parts.folder, signal);
  }

  async remove(id: string): Promise<void> {
    if ((await this.#folders.find(id)) === undefined) return;
    this.#events.leave(id);
    const { cgroups } = await this.#machineOnce();
    if (await cgroups.isFrozen(id)) await cgroups.thaw(id);
    await this.#kill(id);
    this.#parts.checkpoint('bubblewrap.killed');
    await this.#folders.remove(id);
    if ((await this.#folders.ids()).length === 0) await this.#etc.removeOld();
  }

  /** Its groups go with its processes: an engine that is not there any more leaves none behind. */
  async #kill(id: string): Promise<void> {
    await killBox(await this.#status(id), id);
    await (await this.#machineOnce()).cgroups.remove(id);
  }

  async #runningPid(id: string): Promise<number | undefined> {
    const { firstPid } = await this.#status(id);
    return firstPid !== undefined && (await isOfBox(firstPid, id)) ? firstPid : undefined;
  }

  async #requireRunning(id: string): Promise<number> {
    const firstPid = await this.#runningPid(id);
    if (firstPid !== undefined) return firstPid;
    throw new SallyportError('engine_conflict', `box ${id} does not run`, {
      details: { box: id },
      advice: 'Start it first.',
    });
  }

  async #status(id: string): Promise<BoxStatusFile> {
    return readStatus(await readFile(this.#folders.pathOf(id, 'status'), 'utf8').catch(() => ''));
  }

  async #stateOf(id: string): Promise<BoxState> {
    const { firstPid, keeperPid, exitCode } = await this.#status(id);
    const isRunning = firstPid !== undefined && (await isOfBox(firstPid, id));
    if (isRunning) {
      const isFrozen = await (await this.#machineOnce()).cgroups.isFrozen(id);
      return { running: true, exitCode: 0, oomKilled: false, status: isFrozen ? 'paused' : 'running' };
    }
    if (keeperPid === undefined) return { running: false, exitCode: 0, oomKilled: false, status: 'created' };
    return { running: false, exitCode: exitCode ?? killedCode, oomKilled: false, status: 'stopped' };
  }

  /** Anew at each start, so that what was changed by hand or belongs to an older version does not last. */
  async #provideData(id: string, { box, home }: KeptBox): Promise<void> {
    const contents = dataContents(box, home);
    await copyFile(this.#parts.porterPath, this.#folders.pathOf(id, dataFiles[0]));
    for (const [name, content] of Object.entries(contents)) {
      await writeFile(this.#folders.pathOf(id, name), content, { mode: 0o600 });
    }
  }

  async #machineOnce(): Promise<Machine> {
    this.#machine ??= this.#look();
    try {
      return await this.#machine;
    } catch (error) {
      this.#machine = undefined;
      throw error;
    }
  }

  async #look(): Promise<Machine> {
    const [program, cgroups, system] = await Promise.all([
      findBubblewrap(),
      findCgroups(this.#parts.isRoot),
      lookAtSystem(),
    ]);
    return { program, cgroups, system };
  }
}

/** What the spec could not know of: a folder of the system cannot be given a place for something else. */
function requirePossible(
  { mounts, network }: BoxRequest,
  { workdir, folders = [], files = [] }: BoxHome,
): void {
  const odd = [...mounts.map(({ target }) => target), workdir, ...folders, ...files].find(isOfSystem);
  if (odd !== undefined) {
    throw new SallyportError(
      'engine_unsupported',
      `${odd} is in a folder of this system, which a sandbox of bubblewrap has read-only`,
      {
        details: { path: odd },
        advice: 'Choose a target outside of /usr, /bin, /lib, /proc, /dev and /sys, or use Docker.',
      },
    );
  }
  if (network !== undefined) {
    throw new SallyportError('services_unsupported', 'bubblewrap has no networks for services');
  }
}
