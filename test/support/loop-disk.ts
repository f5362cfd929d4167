/**
 * A file system of its own on a loop device, so that a test can fill a disk that is nobody else's. Root only.
 *
 * The device nodes are made in a folder of the test: a machine that was made from packages has none in /dev.
 */

import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { commandExists, requirement } from './requires.ts';

export type LoopDiskType = 'ext4' | 'btrfs';

const run = (program: string, ...args: readonly string[]): string =>
  execFileSync(program, [...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

export const canMakeDisk = (type: LoopDiskType): boolean =>
  requirement(`mkfs.${type}`, commandExists(`mkfs.${type}`)) &&
  requirement('losetup', commandExists('losetup'));

/** Mounts it there; returns what takes all of it away again. */
export function mountLoopDisk(folder: string, type: LoopDiskType, mebibytes: number): () => void {
  const own = mkdtempSync(join(tmpdir(), 'sally-loop-'));
  const file = join(own, 'disk');
  run('truncate', '-s', `${mebibytes}M`, file);
  run(`mkfs.${type}`, '-q', file);
  const device = attach(file, own);
  try {
    run('mount', '-t', type, device, folder);
  } finally {
    // Takes effect when nothing has it mounted any more.
    run('losetup', '--detach', device);
  }
  return () => {
    run('umount', folder);
    rmSync(own, { recursive: true });
  };
}

/** A folder of this user on a disk of its own, until the test ends. Make it before what uses it, which is then gone before it. */
export function folderOnLoopDisk(mebibytes: number, uid: number): string {
  const mountPoint = mkdtempSync(join(tmpdir(), 'sally-folder-'));
  const unmount = mountLoopDisk(mountPoint, 'ext4', mebibytes);
  onTestFinished(() => {
    unmount();
    rmSync(mountPoint, { recursive: true });
  });
  chmodSync(mountPoint, 0o755);
  const folder = join(mountPoint, 'folder');
  mkdirSync(folder);
  chownSync(folder, uid, uid);
  return folder;
}

const loopMajor = 7;
const freeNumber = 'import fcntl, sys; print(fcntl.ioctl(open(sys.argv[1], "rb"), 0x4C82))';

/** Between the question for a free device and its use another process may take it; then the next one is asked for. */
function attach(file: string, own: string): string {
  const control = join(own, 'loop-control');
  run('mknod', control, 'c', '10', '237');
  for (let attempt = 1; ; attempt++) {
    const number = run('python3', '-c', freeNumber, control).trim();
    const device = join(own, `loop${number}-${attempt}`);
    run('mknod', device, 'b', String(loopMajor), number);
    try {
      run('losetup', device, file);
      return device;
    } catch (error) {
      if (attempt === 8) throw error;
    }
  }
}
