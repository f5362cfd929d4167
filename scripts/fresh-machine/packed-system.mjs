/** Archives of Debian packages, which mmdebstrap makes and a folder keeps for a day. */

import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { debianMirror, hashText, must, run } from '../steps.mjs';

/** Packages change daily in sid; a system of the same day is the same. */
const keptMinutes = 24 * 60;

/**
 * The archive of a system with these packages, made in memory where there is room: dpkg writes every file to the disk
 * otherwise. The variant `minbase` installs them, and `extract` only unpacks them with their dependencies.
 */
export async function packedSystem({ suite, variant, packages }, cacheFolder) {
  mkdirSync(cacheFolder, { recursive: true });
  const mirror = debianMirror();
  const key = hashText([suite, variant, mirror, ...packages].join(' '));
  const archive = join(cacheFolder, `${suite}-${key}.tar`);
  const code = await makeOnce(archive, (unfinished) => [
    'mmdebstrap',
    '--quiet',
    `--variant=${variant}`,
    `--include=${packages.join(',')}`,
    // The release file of sid may be older than it says it is valid.
    '--aptopt=Acquire::Check-Valid-Until "false"',
    '--dpkgopt=force-unsafe-io',
    '--format=tar',
    suite,
    unfinished,
    `deb ${mirror} ${suite} main`,
  ]);
  if (code !== 0) process.exit(code);
  return archive;
}

/** Of the arguments the first is the archive, the second the name until it is whole, the rest the command. */
const makeUnlessThere = `
  archive=$1 unfinished=$2; shift 2
  [ -z "$(find "$archive" -mmin -${keptMinutes} 2>/dev/null)" ] || exit 0
  rm -f "$unfinished"
  "$@" && mv "$unfinished" "$archive"
`;

/**
 * Runs the command that makes the archive, unless one of today is there; resolves with its exit code. Other processes wait
 * meanwhile. The kernel's lock ends with the processes that hold it, however they end.
 */
export async function makeOnce(archive, commandFor) {
  const unfinished = `${archive}.unfinished`;
  const words = ['sh', '-c', makeUnlessThere, 'sh', archive, unfinished, ...commandFor(unfinished)];
  return await run('flock', [`${archive}.lock`, ...words], {
    env: { ...process.env, TMPDIR: existsSync('/dev/shm') ? '/dev/shm' : '/var/tmp' },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
}

export async function unpack(archive, folder) {
  mkdirSync(folder, { recursive: true });
  await must('tar', ['--extract', '--numeric-owner', '--file', archive, '--directory', folder]);
}
