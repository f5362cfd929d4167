/**
 * What a test needs of the machine. Where the suite must work (`SALLYPORT_MUST_WORK=1`, as in CI) a missing thing is a
 * failure, because a test that silently does not run proves nothing.
 */

import { spawnSync } from 'node:child_process';

export const mustWork = process.env['SALLYPORT_MUST_WORK'] === '1';

export const full = process.env['SALLYPORT_FULL'] === '1';

export const isRoot = process.getuid?.() === 0;

/** For `describe.runIf` and `when`; throws instead of answering false where the thing must be there. */
export function requirement(name: string, available: boolean): boolean {
  if (available) return true;
  if (mustWork) {
    throw new Error(`this test requires ${name}, and SALLYPORT_MUST_WORK=1 says that it must be here`);
  }
  return false;
}

/** QEMU's emulator of arm64 programs: Debian 12 has only the first name, releases after Debian 13 only the second. */
export const arm64Emulator = ['qemu-aarch64-static', 'qemu-aarch64'].find(commandExists);

export function commandExists(name: string): boolean {
  return spawnSync('sh', ['-c', 'command -v "$1"', 'sh', name], { stdio: 'ignore' }).status === 0;
}
