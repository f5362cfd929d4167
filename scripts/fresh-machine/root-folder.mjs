/** Makes the root folder of a bare machine: a minimal Debian from packages, mostly with Node.js and npm from the npm registry. */

import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { must } from '../steps.mjs';
import { bareMachinePackages } from './distributions.mjs';
import { nameserver } from './network.mjs';
import { packedSystem, unpack } from './packed-system.mjs';

const ownAuthorities = '/usr/local/share/ca-certificates';

export async function makeRootFolder(distribution, { folder, cacheFolder }) {
  const { suite, kernel, node } = distribution;
  const packages = distribution.packages ?? [...bareMachinePackages, ...(kernel?.guestPackages ?? [])];
  await unpack(await packedSystem({ suite, variant: 'minbase', packages }, cacheFolder), folder);
  if (node !== undefined) await addNode(distribution, folder);
  trustSameAuthorities(folder);
  // mmdebstrap copied the resolver and the name of the machine that runs it.
  writeFileSync(join(folder, 'etc/resolv.conf'), `nameserver ${nameserver}\n`);
  writeFileSync(join(folder, 'etc/hostname'), 'fresh\n');
  writeFileSync(join(folder, 'etc/hosts'), '127.0.0.1 localhost fresh\n');
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
