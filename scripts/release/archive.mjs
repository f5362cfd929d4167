/**
 * The archive for machines without Node.js: the package, its run-time dependencies, a Node of its own and an installer.
 * The tree has the layout of an installation prefix, so `bin/sally` works where the archive is unpacked, too.
 *
 *   install.sh
 *   bin/sally, bin/sallyport      links to the command line
 *   lib/sallyport/archive         marks an installation by archive
 *   lib/sallyport/node/           bin/node and its licence
 *   lib/sallyport/package/        the npm package, with node_modules
 */

import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync, gzip } from 'node:zlib';
import { packTar, unpackTar } from 'modern-tar';

const entry = 'lib/sallyport/package/dist/cli/sally.cjs';
const launcher = 'exec node --v8-pool-size=0 -- ';
/** SECURITY: as the launcher of scripts/build.mjs, with `--`, but with the Node beside it instead of one in PATH. */
const ownLauncher =
  'exec "$(dirname -- "$(readlink -f -- "$0")")/../../../node/bin/node" --v8-pool-size=0 -- ';

/** The package as npm would install it. */
export async function packageEntries(tarball) {
  const entries = await unpackTar(gunzipSync(tarball), { strip: 1 });
  return entries.map(({ header, data }) => ({
    path: `lib/sallyport/package/${header.name}`,
    data: Buffer.from(data ?? []),
    isExecutable: (header.mode & 0o100) !== 0,
  }));
}

/** `node_modules` without what npm notes down for itself. */
export function dependencyEntries(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((found) => found.isFile())
    .map((found) => join(found.parentPath, found.name))
    .map((file) => ({ file, path: relative(folder, file) }))
    .filter(({ path }) => path !== '.package-lock.json' && !path.startsWith('.bin/'))
    .map(({ file, path }) => ({
      path: `lib/sallyport/package/node_modules/${path}`,
      data: readFileSync(file),
      isExecutable: false,
    }));
}

export async function makeArchive({ name, version, target, installer, files, node, date }) {
  const entries = [
    { path: 'install.sh', data: installer, isExecutable: true },
    { path: 'bin/sally', link: `../${entry}` },
    { path: 'bin/sallyport', link: `../${entry}` },
    { path: 'lib/sallyport/archive', data: Buffer.from(`${version} ${target}\n`), isExecutable: false },
    ...node.map((part) => ({ ...part, path: `lib/sallyport/node/${part.path}` })),
    ...files.map((file) => (file.path === entry ? withOwnNode(file) : file)),
  ].map((one) => ({ ...one, path: `${name}/${one.path}` }));
  return await compress(await packTar(withFolders(entries).map((one) => tarEntry(one, date))));
}

function withOwnNode(file) {
  const [before, after, ...more] = file.data.toString('utf8').split(launcher);
  if (after === undefined || more.length > 0 || before.length > 100)
    throw new Error(`${file.path} does not begin with the launcher of scripts/build.mjs`);
  return { ...file, data: Buffer.from(`${before}${ownLauncher}${after}`), isExecutable: true };
}

/** Sorted, each folder before what is in it. */
function withFolders(entries) {
  const folders = new Set(
    entries.flatMap(({ path }) => {
      const parts = path.split('/').slice(0, -1);
      return parts.map((_, depth) => `${parts.slice(0, depth + 1).join('/')}/`);
    }),
  );
  const all = [...[...folders].map((path) => ({ path, isFolder: true })), ...entries];
  return all.sort((a, b) => (a.path < b.path ? -1 : 1));
}

function tarEntry({ path, data, link, isExecutable, isFolder }, date) {
  const common = { name: path, size: 0, mtime: date, uid: 0, gid: 0, uname: 'root', gname: 'root' };
  if (isFolder) return { header: { ...common, type: 'directory', mode: 0o755 } };
  if (link !== undefined) return { header: { ...common, type: 'symlink', linkname: link, mode: 0o777 } };
  const mode = isExecutable ? 0o755 : 0o644;
  return { header: { ...common, type: 'file', size: data.length, mode }, body: data };
}

/** The gzip header has no date and does not name the system that made it. */
async function compress(bytes) {
  const compressed = await promisify(gzip)(bytes);
  compressed[9] = 255;
  return compressed;
}
