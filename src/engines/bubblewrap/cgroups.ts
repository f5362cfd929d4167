/**
 * Limits by control groups, which only root can have made here. A box has a group of its own for each controller, or none at
 * all: then what it may use is not limited, and whoever asks is told.
 */

import { chmod, mkdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import type { BoxLimits } from '../../protocol/box.ts';
import { SallyportError } from '../../protocol/errors.ts';

const mountPoint = '/sys/fs/cgroup';
const parentName = 'sallyport';
/** In this order: the last that a process joins is the one that can hold it still. */
const controllers = ['memory', 'pids', 'cpu', 'freezer'] as const;
const periodUs = 100_000;
const settleMs = 10_000;
const lookAgainMs = 5;

export interface BoxCgroups {
  /** Whether boxes have them. */
  readonly available: boolean;
  groupsOf(id: string): readonly { readonly path: string; readonly shownAt: string }[];
  make(id: string, limits: BoxLimits): Promise<void>;
  freeze(id: string): Promise<void>;
  thaw(id: string): Promise<void>;
  isFrozen(id: string): Promise<boolean>;
  /** No process may be in it any more. Idempotent. */
  remove(id: string): Promise<void>;
}

/** For whoever is not root. */
export const noCgroups: BoxCgroups = {
  available: false,
  groupsOf: () => [],
  make: async () => {},
  freeze: async (id) => Promise.reject(cannotFreeze(id)),
  thaw: async (id) => Promise.reject(cannotFreeze(id)),
  isFrozen: async () => false,
  remove: async () => {},
};

const cannotFreeze = (id: string): SallyportError =>
  new SallyportError('engine_unsupported', `box ${id} has no control group, so it cannot be paused`, {
    details: { box: id },
    advice: 'Stop it instead (`sally stop`), run the daemon as root, or use Docker.',
  });

export async function findCgroups(isRoot: boolean): Promise<BoxCgroups> {
  if (!isRoot) return noCgroups;
  const mounts = await readFile('/proc/self/mountinfo', 'utf8');
  const isMounted = (target: string, type: string): boolean =>
    mounts.split('\n').some((line) => line.split(' ')[4] === target && line.includes(` - ${type} `));
  if (controllers.every((name) => isMounted(join(mountPoint, name), 'cgroup'))) return versionOne;
  if (!isMounted(mountPoint, 'cgroup2')) return noCgroups;
  const offered = await readFile(join(mountPoint, 'cgroup.controllers'), 'utf8').catch(() => '');
  return ['memory', 'pids', 'cpu'].every((name) => offered.split(/\s+/).includes(name))
    ? versionTwo
    : noCgroups;
}

const groupOne = (controller: string, id: string): string => join(mountPoint, controller, parentName, id);

const versionOne: BoxCgroups = {
  available: true,
  groupsOf: (id) =>
    controllers.map((name) => ({ path: groupOne(name, id), shownAt: join(mountPoint, name) })),
  make: async (id, { memoryBytes, pids, cpus }) => {
    for (const name of controllers) await makeGroup(join(mountPoint, name, parentName), id);
    const memory = groupOne('memory', id);
    await writeFile(join(memory, 'memory.limit_in_bytes'), String(memoryBytes));
    // No swap on top; a kernel that does not count swap has no such file.
    await writeFile(join(memory, 'memory.memsw.limit_in_bytes'), String(memoryBytes), { flag: 'r+' }).catch(
      (error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error;
      },
    );
    await writeFile(join(groupOne('pids', id), 'pids.max'), String(pids));
    await writeFile(join(groupOne('cpu', id), 'cpu.cfs_period_us'), String(periodUs));
    await writeFile(join(groupOne('cpu', id), 'cpu.cfs_quota_us'), String(Math.floor(cpus * periodUs)));
  },
  freeze: async (id) => setFreezer(id, 'FROZEN'),
  thaw: async (id) => setFreezer(id, 'THAWED'),
  isFrozen: async (id) => {
    const state = await readFile(join(groupOne('freezer', id), 'freezer.state'), 'utf8').catch(() => '');
    return state.trim() === 'FROZEN';
  },
  remove: async (id) => {
    for (const name of controllers) {
      await removeGroup(groupOne(name, id));
      await rmdir(join(mountPoint, name, parentName)).catch(() => {});
    }
  },
};

/** Readable for all, whatever this process's mask: a box shows its own limits, and its user reads them. */
async function makeGroup(parent: string, name: string): Promise<void> {
  const group = join(parent, name);
  await mkdir(group, { recursive: true });
  for (const folder of parent === mountPoint ? [group] : [parent, group]) await chmod(folder, 0o755);
}

async function setFreezer(id: string, wanted: 'FROZEN' | 'THAWED'): Promise<void> {
  const file = join(groupOne('freezer', id), 'freezer.state');
  await until(id, async () => {
    await writeFile(file, wanted);
    return (await readFile(file, 'utf8')).trim() === wanted;
  });
}

const parentTwo = join(mountPoint, parentName);
const groupTwo = (id: string): string => join(parentTwo, id);

const versionTwo: BoxCgroups = {
  available: true,
  groupsOf: (id) => [{ path: groupTwo(id), shownAt: mountPoint }],
  make: async (id, { memoryBytes, pids, cpus }) => {
    await makeGroup(mountPoint, parentName);
    // A group offers to those below it what the one above offers to it.
    for (const folder of [mountPoint, parentTwo]) {
      await writeFile(join(folder, 'cgroup.subtree_control'), '+memory +pids +cpu');
    }
    const group = groupTwo(id);
    await makeGroup(parentTwo, id);
    await writeFile(join(group, 'memory.max'), String(memoryBytes));
    await writeFile(join(group, 'memory.swap.max'), '0', { flag: 'r+' }).catch(
      (error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error;
      },
    );
    await writeFile(join(group, 'pids.max'), String(pids));
    await writeFile(join(group, 'cpu.max'), `${Math.floor(cpus * periodUs)} ${periodUs}`);
  },
  freeze: async (id) => setFreeze(id, '1'),
  thaw: async (id) => setFreeze(id, '0'),
  isFrozen: async (id) => (await frozenTwo(id)) === '1',
  remove: async (id) => {
    await removeGroup(groupTwo(id));
    await rmdir(parentTwo).catch(() => {});
  },
};

async function setFreeze(id: string, wanted: '0' | '1'): Promise<void> {
  await writeFile(join(groupTwo(id), 'cgroup.freeze'), wanted);
  await until(id, async () => (await frozenTwo(id)) === wanted);
}

async function frozenTwo(id: string): Promise<string | undefined> {
  const text = await readFile(join(groupTwo(id), 'cgroup.events'), 'utf8').catch(() => '');
  return /^frozen (\d)/m.exec(text)?.[1];
}

/** A process that was killed is in its group until the kernel is done with it. */
async function removeGroup(path: string): Promise<void> {
  await until(path, async () => {
    try {
      await rmdir(path);
      return true;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT') return true;
      if (code === 'EBUSY') return false;
      throw error;
    }
  });
}

async function until(what: string, done: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + settleMs;
  while (!(await done())) {
    if (performance.now() > end) {
      throw new SallyportError('engine_timeout', `the control group of ${what} does not do as it was told`, {
        details: { what },
      });
    }
    await after(lookAgainMs);
  }
}
