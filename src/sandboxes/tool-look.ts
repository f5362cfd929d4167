/**
 * Looks into the folder of a built-in tool, so that `policy/tool-protection.ts` can say what of it is to be held. Reads, and changes
 * nothing.
 *
 * Settings name programs by any path. Those in the folder are held as well, found by the text of the settings: what a sandbox can
 * write there must not be what a hook, a helper or a status line of the host runs.
 */

import { lstat, readdir } from 'node:fs/promises';
import { join, normalize } from 'node:path';
import { foldedName } from '../policy/protected-names.ts';
import { isProgram, isScriptName, isToolState, toolNameMatcher } from '../policy/tool-name-match.ts';
import { heldWith, type ToolLook, toolPlaces } from '../policy/tool-protection.ts';
import { namedByGit } from './git-named.ts';
import { readSmall } from './small-file.ts';
import { foundKinds, type WorkspaceKnown } from './workspace-look.ts';

export interface ToolPlace extends Pick<WorkspaceKnown, 'isPlaceholder'> {
  /** Its real path. */
  readonly folder: string;
  /** The user's. */
  readonly home: string;
}

/** More are not followed: no settings of a person name as many. */
const mostNamed = 64;
/** Claude Code keeps the history of all projects among its settings. */
const mostSettingsBytes = 32 * 1024 * 1024;

/** Which files of the folder, and of the home, are settings that may name programs. */
const settings: Readonly<
  Record<string, { readonly inFolder: RegExp; readonly inHome: readonly string[]; readonly source: string }>
> = {
  claude: { inFolder: /^settings.*\.json$/i, inHome: ['.claude.json'], source: '.claude' },
  codex: { inFolder: /^(?:hooks\.json|.*config\.toml)$/i, inHome: [], source: '.codex' },
};

export async function lookIntoTool(mount: string, place: ToolPlace): Promise<ToolLook> {
  const { folder, isPlaceholder } = place;
  const names = await readdir(folder).catch((): string[] => []);
  const [atRoot, named, byGit] = await Promise.all([
    executedAtRoot(mount, folder, names),
    namedPrograms(mount, place, names),
    namedByGit(folder),
  ]);
  const executed = [...new Set([...atRoot, ...byGit.map(({ path }) => path)])];
  const paths = toolPlaces(mount, [...executed, ...named.map((path) => heldWith(mount, path))]);
  return { found: await foundKinds(folder, paths, isPlaceholder), executed, named };
}

async function executedAtRoot(
  mount: string,
  folder: string,
  names: readonly string[],
): Promise<readonly string[]> {
  const isHeld = toolNameMatcher(mount);
  const found = await Promise.all(
    names.map(async (name) => {
      if (isToolState(mount, name)) return [];
      if (isHeld([foldedName(name)])) return [name];
      const facts = await lstat(join(folder, name)).catch(() => undefined);
      return facts?.isFile() === true && isProgram(name, facts.mode) ? [name] : [];
    }),
  );
  return found.flat();
}

/** Relative paths. One that is missing counts if its name is that of a script. */
async function namedPrograms(
  mount: string,
  { folder, home }: ToolPlace,
  names: readonly string[],
): Promise<readonly string[]> {
  const known = settings[mount];
  if (known === undefined) return [];
  const files = [
    ...names.filter((name) => known.inFolder.test(name)).map((name) => join(folder, name)),
    ...known.inHome.map((name) => join(home, name)),
  ];
  const texts = await Promise.all(
    files.map(async (file) => (await readSmall(file, { mostBytes: mostSettingsBytes })) ?? ''),
  );
  const places = [
    ...new Set([
      folder,
      join(home, known.source),
      `~/${known.source}`,
      `$HOME/${known.source}`,
      `\${HOME}/${known.source}`,
    ]),
  ];
  const paths = [...new Set(texts.flatMap((text) => places.flatMap((at) => pathsIn(text, at))))];
  const judged = await Promise.all(
    paths.map(async (path) => {
      const facts = await lstat(join(folder, path)).catch(() => undefined);
      const name = path.slice(path.lastIndexOf('/') + 1);
      if (facts === undefined) return isScriptName(name) ? [path] : [];
      // A file without an ending may be given to a shell.
      const isRun = isProgram(name, facts.mode) || !name.slice(1).includes('.');
      return !facts.isDirectory() && isRun ? [path] : [];
    }),
  );
  return judged.flat().slice(0, mostNamed);
}

/** What follows a place in the text of settings, up to what ends a word in a shell, in JSON or in TOML. */
function pathsIn(text: string, place: string): readonly string[] {
  return text
    .split(`${place}/`)
    .slice(1)
    .map((rest) => normalize(/^[^\s"'`\\;|&<>(){}$*?,\]]*/.exec(rest)?.[0] ?? '').replace(/\/+$/, ''))
    .filter((path) => path !== '' && path !== '.' && path !== '..' && !/^(?:\.\.)?\//.test(path));
}
