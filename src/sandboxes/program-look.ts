/**
 * Finds what of the running program lies in a live workspace: its package, the packages that it loads, the executable of Node, and
 * what `npx sally` would run there. Reads, and changes nothing.
 */

import { readFile, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isWithin } from '../policy/paths.ts';
import { type ProgramLook, programNames } from '../policy/program-paths.ts';

/** More than ours has by far: a manifest that names thousands is not followed. */
const mostPackages = 500;

/** `programs`: folders and files, absolute; `folder`: the workspace's real path. */
export async function lookForPrograms(folder: string, programs: readonly string[]): Promise<ProgramLook> {
  const named = programNames.map((name) => join(folder, name));
  const real = await Promise.all([...programs, ...named].map(realOrNothing));
  const roots = [...new Set(real.flat())];
  const running = new Set((await Promise.all(programs.map(realOrNothing))).flat());
  const around = roots.find((root) => running.has(root) && isWithin(folder, root));
  const inside = roots.filter((root) => root !== folder && isWithin(root, folder));
  const found: Loaded = { packages: new Set(), links: new Set(), nearer: new Set() };
  for (const root of inside) await addPackages(root, found);
  const within = (paths: Iterable<string>): readonly string[] =>
    [...paths].filter((path) => isWithin(path, folder)).map((path) => path.slice(folder.length + 1));
  return {
    paths: within([...found.packages, ...found.links]),
    nearer: within(found.nearer),
    ...(around === undefined ? {} : { around }),
  };
}

const realOrNothing = async (path: string): Promise<readonly string[]> =>
  await realpath(path).then(
    (real) => [real],
    () => [],
  );

/** Absolute paths. */
interface Loaded {
  readonly packages: Set<string>;
  /** By which Node comes to one of the packages, as in the store of pnpm. */
  readonly links: Set<string>;
  readonly nearer: Set<string>;
}

/** The package and what it depends on, as Node resolves it: nearest `node_modules` first. */
async function addPackages(root: string, found: Loaded): Promise<void> {
  const { packages, links, nearer } = found;
  const waiting = [root];
  for (let next = waiting.pop(); next !== undefined && packages.size < mostPackages; next = waiting.pop()) {
    if (packages.has(next)) continue;
    packages.add(next);
    for (const name of await dependenciesOf(next)) {
      const dependency = await resolved(next, name);
      if (dependency === undefined) continue;
      waiting.push(dependency.real);
      if (dependency.path !== dependency.real) links.add(dependency.path);
      for (const folder of dependency.nearer) nearer.add(folder);
    }
  }
}

async function dependenciesOf(folder: string): Promise<readonly string[]> {
  try {
    const manifest: unknown = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
    const { dependencies = {}, optionalDependencies = {} } = manifest as Record<string, object | undefined>;
    return Object.keys({ ...dependencies, ...optionalDependencies });
  } catch {
    return [];
  }
}

interface Resolved {
  readonly path: string;
  readonly real: string;
  /** Each `node_modules` that Node looks into before. */
  readonly nearer: readonly string[];
}

async function resolved(from: string, name: string): Promise<Resolved | undefined> {
  const nearer: string[] = [];
  for (let folder = from; ; folder = dirname(folder)) {
    if (basename(folder) !== 'node_modules') {
      const modules = join(folder, 'node_modules');
      const path = join(modules, name);
      const [real] = await realOrNothing(path);
      if (real !== undefined) return { path, real, nearer };
      // The package itself is held, with what is in it.
      if (folder !== from) nearer.push(modules);
    }
    if (dirname(folder) === folder) return undefined;
  }
}
