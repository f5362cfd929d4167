/** Makes the root folder of a bare machine: a minimal Debian from packages, with Node.js and npm from the npm registry. */

import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { debianMirror, hashText, must } from '../steps.mjs';
import { bareMachinePackages } from './distributions.mjs';
import { nameserver } from './network.mjs';

/** Packages change daily in sid; a bare system of the same day is the same. */
const keptMs = 24 * 3600 * 1000;
const ownAuthorities = '/usr/local/share/ca-certificates';

export async function makeRootFolder(distribution, { folder, cacheFolder }) {
  const archive = await bareSystem(distribution, cacheFolder);
  mkdirSync(folder, { recursive: true });
  await must('tar', ['--extract', '--numeric-owner', '--file', archive, '--directory', folder]);
  await addNode(distribution, folder);
  trustSameAuthorities(folder);
  // mmdebstrap copied the resolver and the name of the machine that runs it.
  writeFileSync(join(folder, 'etc/resolv.conf'), `nameserver ${nameserver}\n`);
  writeFileSync(join(folder, 'etc/hostname'), 'fresh\n');
  writeFileSync(join(folder, 'etc/hosts'), '127.0.0.1 localhost fresh\n');
}

/** The archive of a minimal system, made in memory where there is room: dpkg writes every file to the disk otherwise. */
async function bareSystem({ suite }, cacheFolder) {
  mkdirSync(cacheFolder, { recursive: true });
  const mirror = debianMirror();
  const key = hashText([suite, mirror, ...bareMachinePackages].join(' '));
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
    '--variant=minbase',
    `--include=${bareMachinePackages.join(',')}`,
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

/** The packages of the npm registry that hold Node.js and npm themselves. */
async function addNode({ node, npm }, folder) {
  const modules = join(folder, 'usr/local/lib/node_modules');
  const downloads = join(folder, 'tmp/downloads');
  mkdirSync(modules, { recursive: true });
  mkdirSync(downloads, { recursive: true });
  const architecture = process.arch === 'arm64' ? 'arm64' : 'x64';
  for (const [name, version, target] of [
    [`node-linux-${architecture}`, node, join(downloads, 'node')],
    ['npm', npm, join(modules, 'npm')],
  ]) {
    const packed = spawnSync('npm', ['pack', '--silent', `${name}@${version}`], {
      cwd: downloads,
      encoding: 'utf8',
    });
    if (packed.status !== 0) throw new Error(`npm pack ${name}@${version}: ${packed.stderr}`);
    mkdirSync(target, { recursive: true });
    const file = join(downloads, packed.stdout.trim().split('\n').at(-1));
    await must('tar', ['--extract', '--file', file, '--directory', target, '--strip-components=1']);
  }
  cpSync(join(downloads, 'node/bin/node'), join(folder, 'usr/local/bin/node'));
  for (const name of ['npm', 'npx']) {
    symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, join(folder, 'usr/local/bin', name));
  }
  rmSync(downloads, { recursive: true });
}

/** Where a proxy of the network opens TLS, its authority is in this folder, and the new machine is behind the same one. */
function trustSameAuthorities(folder) {
  if (!existsSync(ownAuthorities) || readdirSync(ownAuthorities).length === 0) return;
  cpSync(ownAuthorities, join(folder, ownAuthorities), { recursive: true });
  const { status, stderr } = spawnSync('chroot', [folder, 'update-ca-certificates'], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`update-ca-certificates: ${stderr}`);
}
