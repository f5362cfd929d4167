/** Sandboxes that the daemons of other engines hold, found in their records: neither a daemon nor an engine is started for it. */

import { type EngineFolder, listEngineFolders } from '../lib/engine-folders.ts';
import { SallyportError } from '../protocol/errors.ts';
import { readSandboxNames } from '../store/sandbox-names.ts';

export interface OtherEngine {
  /** `docker`, `bubblewrap`. */
  readonly engine: string;
  readonly endpoint?: string;
  readonly names: readonly string[];
}

const idPrefix = 'sb-';

const others = (stateDir: string, own: string): readonly EngineFolder[] =>
  listEngineFolders(stateDir).filter(({ path }) => path !== own);

/** `own`: the folder of the caller's engine. Engines without sandboxes are left out. */
export function otherEngines(stateDir: string, own: string): readonly OtherEngine[] {
  return others(stateDir, own).flatMap(({ path, key, endpoint }) => {
    const names = readSandboxNames(path).map(({ name }) => name);
    if (names.length === 0) return [];
    return [{ engine: key.split('-', 1)[0] ?? key, ...(endpoint === undefined ? {} : { endpoint }), names }];
  });
}

/** Of all engines. */
export function allSandboxNames(stateDir: string): readonly string[] {
  const names = listEngineFolders(stateDir).flatMap(({ path }) => readSandboxNames(path));
  return [...new Set(names.map(({ name }) => name))];
}

/** The engine that holds the sandbox of this name or id. */
export function findElsewhere(
  stateDir: string,
  own: string,
  reference: string,
): { readonly folder: EngineFolder; readonly id: string; readonly name: string } | undefined {
  const found = others(stateDir, own).flatMap((folder) =>
    readSandboxNames(folder.path)
      .filter(({ id, name }) => name === reference || isStartOf(id, reference))
      .map((sandbox) => ({ folder, ...sandbox })),
  );
  if (found.length < 2) return found[0];
  const engines = found.map(({ folder }) => nameOf(folder));
  throw new SallyportError(
    'sandbox_ambiguous',
    `${found.length} engines have a sandbox ${reference}: ${engines.join(', ')}`,
    {
      details: { sandbox: reference, engines, ids: found.map(({ id }) => id) },
      advice: `Use the id instead of the name: ${found.map(({ id }, at) => `${id} (${engines[at]})`).join(', ')}.`,
    },
  );
}

/** As in the daemon: an id may be cut off. */
const isStartOf = (id: string, reference: string): boolean =>
  reference.length > idPrefix.length && reference.startsWith(idPrefix) && id.startsWith(reference);

const nameOf = ({ key, endpoint }: EngineFolder): string => endpoint ?? key;
