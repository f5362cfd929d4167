/**
 * Finds what of the running program lies in a live workspace: its package, the packages that it loads, the executable of Node, and
 * what `npx sally` would run there. Reads, and changes nothing.
 */

import { readFile, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
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
  const found = new Set<string>();
  for (const root of inside) await addPackages(root, found);
  return {
    paths: [...found].filter((path) => isWithin(path, folder)).map((path) => path.slice(folder.length + 1)),
    ...(around === undefined ? {} : { around }),
  };
}

const realOrNothing = async (path: string): Promise<readonly string[]> =>
  await realpath(path).then(
    (real) => [real],
    () => [],
  );

/** The package and what it depends on, as Node resolves it: nearest `node_modules` first. */
async function addPackages(root: string, found: Set<string>): Promise<void> {
  const waiting = [root];
  for (let next = waiting.pop(); next !== undefined && found.size < mostPackages; next = waiting.pop()) {
    if (found.has(next)) continue;
    found.add(next);
    for (const name of await dependenciesOf(next)) {
      const folder = await resolved(next, name);
      if (folder !== undefined) waiting.push(folder);
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

async function resolved(from: string, name: string): Promise<string | undefined> {
  for (let folder = from; ; folder = dirname(folder)) {
    const [real] = await realOrNothing(join(folder, 'node_modules', name));
    if (real !== undefined) return real;
    if (dirname(folder) === folder) return undefined;
  }
}
