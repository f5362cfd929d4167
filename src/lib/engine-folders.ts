/**
 * The state folder of each engine's daemon. The first engine that is used lives in the user's state folder itself, every
 * further one in `engines/<key>`. `daemon.json` in a folder names the engine it belongs to. Client and daemon use the same rule.
 */

import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface EngineFolder {
  readonly path: string;
  /** Of the engine: `protocol/engine-environment.ts`. */
  readonly key: string;
  /** Variables that choose this engine. */
  readonly variables: Readonly<Record<string, string>>;
  /** How a person would name the engine. Absent before the daemon first reached it. */
  readonly endpoint?: string;
  /** By which the engine is known under every address. Absent: it has none that lasts. */
  readonly engineId?: string;
}

const keyPattern = /^[a-z]+(?:-[0-9a-f]{8})?$/;
const fileIn = (folder: string): string => join(folder, 'daemon.json');
const further = (stateDir: string): string => join(stateDir, 'engines');

export function engineFolderPath(stateDir: string, key: string): string {
  const first = readEngineFolder(stateDir);
  return first === undefined || first.key === key ? stateDir : join(further(stateDir), key);
}

/** Undefined: no daemon has claimed the folder. One whose file is damaged belongs to no engine, and is left alone. */
export function readEngineFolder(path: string): EngineFolder | undefined {
  let text: string;
  try {
    text = readFileSync(fileIn(path), 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
  const { key, variables = {}, endpoint, engineId } = parse(text);
  if (typeof key !== 'string' || !keyPattern.test(key)) return { path, key: 'unreadable', variables: {} };
  const strings = Object.entries(variables).filter(([, value]) => typeof value === 'string');
  return {
    path,
    key,
    variables: Object.fromEntries(strings),
    ...(typeof endpoint === 'string' ? { endpoint } : {}),
    ...(typeof engineId === 'string' ? { engineId } : {}),
  };
}

function parse(text: string): Partial<EngineFolder> {
  try {
    return (JSON.parse(text) ?? {}) as Partial<EngineFolder>;
  } catch {
    return {};
  }
}

/** What the folder says about the engine of this key, and whether that has sandboxes there. */
export function engineInFolder(
  path: string,
  key: string,
): Pick<EngineFolder, 'endpoint' | 'engineId'> & { readonly holdsSandboxes: boolean } {
  const found = readEngineFolder(path);
  const holdsSandboxes = namesIn(join(path, 'sandboxes')).length > 0;
  return found?.key === key ? { ...found, holdsSandboxes } : { holdsSandboxes };
}

/** Of every engine that was ever used, the first one first. */
export function listEngineFolders(stateDir: string): readonly EngineFolder[] {
  const paths = [stateDir, ...namesIn(further(stateDir)).map((key) => join(further(stateDir), key))];
  return paths.flatMap((path) => readEngineFolder(path) ?? []);
}

/** The caller holds the lock of the folder. */
export function writeEngineFolder({ path, ...engine }: EngineFolder): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const next = `${fileIn(path)}.new`;
  writeFileSync(next, `${JSON.stringify(engine, undefined, 2)}\n`, { mode: 0o600 });
  renameSync(next, fileIn(path));
}

/** The caller holds the lock of the folder, and no sandbox was ever made in it. */
export function forgetEngineFolder(path: string): void {
  rmSync(fileIn(path), { force: true });
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}
