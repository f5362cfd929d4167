/**
 * Images with programs of Debian, on top of one that is there. Kept under a tag of their inputs, so that only the first run on
 * a machine makes them. The packages are unpacked, not installed: no maintainer script runs, and what only those need is left out.
 */

import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { dockerImageEngine } from '../../src/engines/docker/image-engine.ts';
import { buildPastCache } from '../../src/images/build-past-cache.ts';
import { suite } from '../../src/images/recipe.ts';
import { testEngine } from './engine.ts';
import { commandExists, requirement } from './requires.ts';

const run = promisify(execFile);

export interface PackagedImage {
  readonly repository: string;
  readonly packages: readonly string[];
  /**
   * Finds what was unpacked in `rootfs`. Copies first: a step such as `USER root` would be shared by the builder's cache with images of other
   * tests, and an engine that removes one of these removes the shared step, also while this image is built on it.
   */
  readonly dockerfile: string;
  /** Left out of `rootfs`. */
  readonly unused: readonly string[];
  /** Puts more into the folder of the build, and says so in `version`. */
  readonly more?: { readonly version: string; readonly put: (folder: string) => Promise<void> };
}

export const canPackageImages = (): boolean =>
  requirement('apt-get and dpkg-deb', commandExists('apt-get') && commandExists('dpkg-deb'));

export async function packagedImage(image: PackagedImage): Promise<string> {
  const { repository, packages, dockerfile, more } = image;
  const engine = dockerImageEngine(testEngine().connection);
  const inputs = createHash('sha256')
    .update(JSON.stringify([packages, dockerfile, ...(more === undefined ? [] : [more.version])]))
    .digest('hex');
  const tag = inputs.slice(0, 12);
  const reference = `${repository}:${tag}`;
  if ((await engine.find(reference)) !== undefined) return reference;
  const folder = await mkdtemp(join(tmpdir(), `${repository}-`));
  try {
    await unpack(folder, image);
    await more?.put(folder);
    await writeFile(join(folder, 'Dockerfile'), dockerfile);
    // Another file may make the same image at this moment.
    const id = await buildPastCache(
      async (noCache) => {
        const tar = spawn('tar', ['-C', folder, '-cf', '-', '.'], { stdio: ['ignore', 'pipe', 'inherit'] });
        const networkMode = 'none' as const;
        const request = { dockerfile: 'Dockerfile', buildArgs: {}, labels: {}, networkMode, noCache };
        return await engine.build(tar.stdout, request, { progress: () => {} });
      },
      { noCache: false, say: () => {} },
    );
    await engine.tag(id, repository, tag);
    return reference;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function unpack(folder: string, { packages, unused }: PackagedImage): Promise<void> {
  const debs = join(folder, 'debs');
  const rootfs = join(folder, 'rootfs');
  await mkdir(debs);
  await mkdir(rootfs);
  const apt = await aptOfImages(folder);
  await run('apt-get', [...apt, 'update'], { cwd: debs });
  await run('apt-get', [...apt, 'download', ...packages], { cwd: debs });
  for (const deb of await readdir(debs)) await run('dpkg-deb', ['-x', join(debs, deb), rootfs]);
  // Debian 12 has both below /usr; packages of it may still say /lib.
  await run('sh', ['-c', '[ ! -d lib ] || { cp -a lib/. usr/lib/ && rm -r lib; }'], { cwd: rootfs });
  for (const path of unused) await rm(join(rootfs, path), { recursive: true, force: true });
}

/** Packages of the release that our images are made of, from this machine's mirror, whatever release this machine is. */
async function aptOfImages(folder: string): Promise<readonly string[]> {
  const home = join(folder, 'apt');
  for (const place of ['lists/partial', 'cache/archives/partial']) {
    await mkdir(join(home, place), { recursive: true });
  }
  await writeFile(join(home, 'status'), '');
  const { stdout } = await run('apt-get', ['indextargets', '--format', '$(SITE)', 'Created-By: Packages']);
  const mirror = stdout.split('\n').find((site) => /\/debian\/?$/.test(site));
  if (mirror === undefined) throw new Error('this machine has no mirror of Debian among its apt sources');
  const keys = '/usr/share/keyrings/debian-archive-keyring.gpg';
  await writeFile(join(home, 'sources.list'), `deb [signed-by=${keys}] ${mirror} ${suite} main\n`);
  const settings = {
    'Dir::Etc::SourceList': join(home, 'sources.list'),
    'Dir::Etc::SourceParts': '/dev/null',
    'Dir::State::Lists': join(home, 'lists'),
    'Dir::State::status': join(home, 'status'),
    'Dir::Cache': join(home, 'cache'),
    // apt's own user may not enter the folder of a test.
    'APT::Sandbox::User': 'root',
  };
  return ['-q', ...Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`])];
}
