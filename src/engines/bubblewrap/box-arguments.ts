/**
 * A box in bubblewrap's words, and what its keeper is to prepare. Pure: the same input always gives the same line.
 *
 * Descriptors are those of `porter/keeper/keeper.c`.
 */

import { release } from 'node:os';
import { posix } from 'node:path';
import { groupName, userName } from '../../policy/user-names.ts';
import {
  type BoxMount,
  type BoxRequest,
  type BoxTmpfs,
  porterMount,
  porterPath,
} from '../../protocol/box.ts';
import type { BoxHome } from '../../sandboxes/ports.ts';
import { nameArgument } from './box-process.ts';
import type { SystemPlaces } from './system-places.ts';

export interface BoxPart {
  /** Of the box's own folder, relative to it. */
  readonly from: string;
  readonly target: string;
  readonly kind: 'directory' | 'file';
}

export interface BoxLine {
  readonly keeper: readonly string[];
  readonly bubblewrap: readonly string[];
}

export interface LineFacts {
  readonly id: string;
  readonly folder: string;
  readonly isRoot: boolean;
  readonly system: SystemPlaces;
  /** The copy of what is chosen of /etc. */
  readonly etc: string;
  /** Where each controller keeps the box's group, and where it is shown inside. Empty: there are none. */
  readonly cgroups: readonly { readonly path: string; readonly shownAt: string }[];
  /** The kernel counts processes for each user namespace on its own, so a limit of them is one of the box. */
  readonly countsProcesses: boolean;
}

const doorFd = 3;
const statusFd = 4;
const filterFd = 5;
const firstDataFd = 10;

/** Files that each box has its own of, with what is in them; the names are those in the box's folder and beside porter. */
export const dataFiles = ['porter', 'passwd', 'group', 'hosts', 'resolv.conf', 'hostname'] as const;

export function dataContents({ user, asksGate }: BoxRequest, { home }: BoxHome) {
  const { uid, gid } = user;
  const [name, group] = [userName(uid), groupName(gid)];
  return {
    passwd: `root:x:0:0:root:/:/bin/sh\n${name}:x:${uid}:${gid}:${name}:${home}:/bin/sh\n`,
    group: `root:x:0:\n${group}:x:${gid}:\n`,
    hosts: '127.0.0.1 localhost sallyport\n::1 localhost\n',
    'resolv.conf': asksGate === true ? 'nameserver 127.0.0.1\nsearch .\n' : '',
    hostname: 'sallyport\n',
  } as const;
}

/** What the box may write to and keeps while it exists: its home, and the places that copies go to. */
export function ownParts({ mounts }: BoxRequest, { home, workdir, folders = [], files = [] }: BoxHome) {
  const isCovered = (path: string, by: readonly string[]): boolean =>
    by.some((folder) => path === folder || path.startsWith(`${folder}/`));
  const bound = [...mounts.map(({ target }) => target), '/tmp'];
  const parts: BoxPart[] = [];
  const add = (target: string, kind: BoxPart['kind']): void => {
    if (target === '/' || isCovered(target, bound)) return;
    parts.push({ from: posix.join('root', target), target, kind });
  };
  for (const folder of [...new Set([home, workdir, ...folders])].sort()) add(folder, 'directory');
  for (const file of files) add(file, 'file');
  return parts;
}

export function boxLine(box: BoxRequest, home: BoxHome, facts: LineFacts): BoxLine {
  const staged: string[] = [];
  // Root has them put where the box's user can reach them; anybody else can reach what is his own.
  const reach = (path: string): string => (facts.isRoot ? `/run/${staged.push(path) - 1}` : path);
  const withoutPrograms: number[] = [];
  const memoryAt = ({ target, sizeBytes, exec }: BoxTmpfs): readonly string[] =>
    exec
      ? memory(target, sizeBytes)
      : ['--bind', `/run/memory-${withoutPrograms.push(sizeBytes) - 1}`, target];
  const mounts = [
    ...outermost(ownParts(box, home)).map(({ from, target }) => ({
      source: posix.join(facts.folder, from),
      target,
      writable: true,
    })),
    ...box.mounts,
  ].flatMap((mount) => bind({ ...mount, source: reach(mount.source) }));
  const bubblewrap = [
    ...namespaces(box),
    ...systemPart(facts.system),
    ...kernelPart(facts, memoryAt(sharedMemory(box))),
    ...dataPart(),
    ...bind({ source: reach(facts.etc), target: '/etc', writable: false }),
    ...box.tmpfs.flatMap(memoryAt),
    ...mounts,
    '--chdir',
    '/',
    // Last: until then bubblewrap makes the places that things are mounted at.
    '--remount-ro',
    '/',
    '--',
    porterPath,
    `--nofile=${box.limits.nofile}`,
    ...(facts.countsProcesses ? [`--nproc=${box.limits.pids}`] : []),
    ...(box.sharesUid === true ? ['--shared-uid'] : []),
    ...(box.endsWithHost ? ['--exit-with-host'] : []),
    `--door=${doorFd}`,
    nameArgument(facts.id),
  ];
  return { keeper: keeperPart(box, facts, { staged, withoutPrograms }), bubblewrap };
}

/** Where nothing may be executed from /tmp, nothing may be from the other folder that is memory and open to all. */
const sharedMemory = ({ limits, tmpfs }: BoxRequest): BoxTmpfs => ({
  target: '/dev/shm',
  sizeBytes: limits.shmBytes,
  exec: tmpfs.every(({ exec }) => exec),
});

/** A place inside another one of the box's own is there with it. */
const outermost = (parts: readonly BoxPart[]): readonly BoxPart[] =>
  parts.filter(({ target }) => !parts.some((other) => target.startsWith(`${other.target}/`)));

function keeperPart(
  { user, asksGate }: BoxRequest,
  { folder, isRoot, cgroups }: LineFacts,
  {
    staged,
    withoutPrograms,
  }: { readonly staged: readonly string[]; readonly withoutPrograms: readonly number[] },
): readonly string[] {
  return [
    `--folder=${folder}`,
    // SECURITY: before bubblewrap starts. As root, or as root of a user namespace of its own, it was seen to write to the host.
    ...(isRoot ? [`--user=${user.uid}:${user.gid}`] : []),
    ...cgroups.map(({ path }) => `--cgroup=${path}`),
    ...staged.map((path) => `--stage=${path}`),
    ...withoutPrograms.map((sizeBytes) => `--memory=${sizeBytes}`),
    ...dataFiles.map((name) => `--data=${name}`),
    ...(asksGate === true ? ['--all-ports'] : []),
  ];
}

/** The network namespace is the keeper's: see there. */
function namespaces({ user }: BoxRequest): readonly string[] {
  return [
    '--unshare-user',
    '--disable-userns',
    ...['--uid', String(user.uid), '--gid', String(user.gid)],
    '--unshare-pid',
    '--as-pid-1',
    '--unshare-ipc',
    '--unshare-uts',
    '--hostname',
    'sallyport',
    '--unshare-cgroup-try',
    '--new-session',
    '--clearenv',
    '--cap-drop',
    'ALL',
    '--seccomp',
    String(filterFd),
    '--json-status-fd',
    String(statusFd),
  ];
}

const systemPart = ({ programs }: SystemPlaces): readonly string[] =>
  programs.flatMap(({ path, link }) =>
    link === undefined ? ['--ro-bind', path, path] : ['--symlink', link, path],
  );

function kernelPart({ system, cgroups }: LineFacts, shared: readonly string[]): readonly string[] {
  return [
    '--proc',
    '/proc',
    // Without devices a bind of this one can be neither read nor written.
    ...system.maskedFiles.flatMap((path) => ['--ro-bind', '/dev/null', path]),
    ...system.maskedFolders.flatMap((path) => ['--perms', '0555', '--tmpfs', path, '--remount-ro', path]),
    '--dev',
    '/dev',
    ...shared,
    '--remount-ro',
    '/dev',
    ...cgroups.flatMap(({ path, shownAt }) => ['--ro-bind', path, shownAt]),
    ...['--dir', '/run', '--dir', '/var', '--symlink', '../tmp', '/var/tmp'],
  ];
}

const memory = (target: string, sizeBytes: number): readonly string[] => [
  '--perms',
  '1777',
  '--size',
  String(sizeBytes),
  '--tmpfs',
  target,
];

function dataPart(): readonly string[] {
  return [
    ...['--perms', '0555', '--size', String(2 ** 20), '--tmpfs', porterMount],
    ...dataFiles.flatMap((name, index) => {
      const mode = name === 'porter' ? '0555' : '0444';
      return ['--perms', mode, '--file', String(firstDataFd + index), posix.join(porterMount, name)];
    }),
    '--remount-ro',
    porterMount,
  ];
}

/** Never with devices and never with set-user-id, which is bubblewrap's own rule. */
const bind = ({ source, target, writable }: BoxMount): readonly string[] => [
  writable ? '--bind' : '--ro-bind',
  source,
  target,
];

/** Since 5.14 a user namespace has a count of its own, so a limit does not count what else its user runs. */
export function countsProcesses(kernel = release()): boolean {
  const [major = 0, minor = 0] = kernel.split('.').map(Number);
  return major > 5 || (major === 5 && minor >= 14);
}
