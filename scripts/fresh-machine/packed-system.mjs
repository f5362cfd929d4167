/** Archives of Debian packages, which mmdebstrap makes and a folder keeps for a day. */

import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { debianMirror, hashText, must } from '../steps.mjs';

/** Packages change daily in sid; a system of the same day is the same. */
const keptMs = 24 * 3600 * 1000;

/**
 * The archive of a system with these packages, made in memory where there is room: dpkg writes every file to the disk
 * otherwise. The variant `minbase` installs them, and `extract` only unpacks them with their dependencies.
 */
export async function packedSystem({ suite, variant, packages }, cacheFolder) {
  mkdirSync(cacheFolder, { recursive: true });
  const mirror = debianMirror();
  const key = hashText([suite, variant, mirror, ...packages].join(' '));
  const archive = join(cacheFolder, `${suite}-${key}.tar`);
  const isThere = () => existsSync(archive) && Date.now() - statSync(archive).mtimeMs < keptMs;
  const unlock = await lock(`${archive}.lock`, isThere);
  if (isThere()) {
    unlock();
    return archive;
  }
  const unfinished = `${archive}.${process.pid}`;
  const args = [
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
  ];
  try {
    await must('mmdebstrap', args, {
      env: { ...process.env, TMPDIR: existsSync('/dev/shm') ? '/dev/shm' : '/var/tmp' },
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    renameSync(unfinished, archive);
  } finally {
    rmSync(unfinished, { force: true });
    unlock();
  }
  return archive;
}

/** Waits while another process that runs makes the same archive. */
async function lock(file, isThere) {
  for (;;) {
    try {
      writeFileSync(file, String(process.pid), { flag: 'wx' });
      return () => rmSync(file, { force: true });
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
    if (isThere()) return () => {};
    const holder = existsSync(file) ? readFileSync(file, 'utf8') : '';
    if (holder !== '' && !existsSync(`/proc/${holder}`)) rmSync(file, { force: true });
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

export async function unpack(archive, folder) {
  mkdirSync(folder, { recursive: true });
  await must('tar', ['--extract', '--numeric-owner', '--file', archive, '--directory', folder]);
}
