/** The release script run for real, and ways to install what it made, each by the line that README shows. */

import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { packageInfo } from '../../src/lib/package-root.ts';

const execute = promisify(execFile);
const { root } = packageInfo();

export const targetHere = `linux-${process.arch}`;

/** Run also where the tree has changes that are not committed, as that of a developer has. */
export async function makeRelease(out: string, ...args: readonly string[]): Promise<void> {
  const words = ['scripts/release.mjs', '--allow-dirty', '--out', out, ...args];
  await execute(process.execPath, words, { cwd: root, maxBuffer: 2 ** 24 });
}

const registryOfReadme = 'https://registry.example.com';

/** README's line that installs Sallyport from a registry, with this one in the place of README's. */
export async function readmeLineFor(registry: string): Promise<string> {
  const line = await readmeLines('npm install -g sallyport');
  if (!line.endsWith(` --registry ${registryOfReadme}`)) {
    throw new Error(`README installs from whichever registry is configured: ${line}`);
  }
  return line.replace(registryOfReadme, registry);
}

/** The lines of README that install Sallyport and begin with these words, for this machine's architecture. */
export async function readmeLines(...beginnings: readonly string[]): Promise<string> {
  const text = await readFile(join(root, 'README.md'), 'utf8');
  const lines = text.split('\n').flatMap((line) => /^\$ (.*?)\s*(?:#.*)?$/.exec(line)?.[1] ?? []);
  const found = beginnings.map((beginning) => lines.find((line) => line.startsWith(beginning)));
  if (found.includes(undefined)) throw new Error(`README has no line for ${beginnings.join(', ')}`);
  return found.join(' && ').replaceAll('linux-x64', targetHere);
}

/** A home of its own, in which npm knows only this registry, and nothing from before. */
export async function newNpmUser(folder: string, configuration: string): Promise<Record<string, string>> {
  const home = await mkdtemp(join(folder, 'home-'));
  await writeFile(join(home, '.npmrc'), configuration);
  return {
    HOME: home,
    PATH: process.env['PATH'] ?? '',
    npm_config_userconfig: join(home, '.npmrc'),
    npm_config_cache: join(home, 'cache'),
    npm_config_prefix: join(home, '.local'),
  };
}

/** Programs of this machine but for Node.js and what comes with it. */
export async function pathWithoutNode(folder: string): Promise<string> {
  const bin = join(folder, 'bin-without-node');
  await mkdir(bin);
  for (const place of ['/usr/bin', '/bin', '/usr/sbin', '/sbin']) {
    for (const name of await readdir(place).catch(() => [])) {
      if (/^(node|nodejs|npm|npx|corepack)$/.test(name)) continue;
      await symlink(join(place, name), join(bin, name)).catch(() => {});
    }
  }
  return bin;
}

export async function shell(
  line: string,
  options: { readonly cwd: string; readonly env: Record<string, string> },
): Promise<string> {
  return (await execute('/bin/sh', ['-ec', line], { ...options, maxBuffer: 2 ** 24 })).stdout;
}
