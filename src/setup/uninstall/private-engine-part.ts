/** Decides whether the uninstallation removes the private engine. The machine shares it, so others may still need it. */

import { connect } from '../../engines/docker/connect.ts';
import { shellLine } from '../../lib/shell-words.ts';
import { SallyportError } from '../../protocol/errors.ts';
import type { SetupEnvironment } from '../config.ts';
import type { PrivateEnginePaths } from '../private-engine/paths.ts';
import { isPresent, removePrivateEngine } from '../private-engine/remove.ts';
import { privateEngineStatus } from '../private-engine/status.ts';
import { othersObjects } from './owned-objects.ts';
import type { Step, Thing } from './plan.ts';

export interface PrivateEngineOptions {
  readonly setup: SetupEnvironment;
  readonly paths: PrivateEnginePaths;
  /** The user's, one for each engine that was used. */
  readonly owners: readonly string[];
  /** Also where its content is unknown. */
  readonly force: boolean;
  readonly purge: boolean;
}

/** Neither: no private engine is present. */
export async function privateEnginePart(
  options: PrivateEngineOptions,
): Promise<{ readonly step?: Step; readonly keep?: Thing }> {
  const { setup, paths, purge } = options;
  if (!isPresent(paths)) return {};
  const thing = { kind: 'private engine', name: `${paths.socket}, data in ${paths.dataRoot}` };
  const why = await reasonToKeep(options);
  if (why !== undefined) {
    const byHand = `sally setup --stop && ${shellLine(['rm', '-rf', paths.stateDir, paths.runDir])}`;
    return { keep: { ...thing, why, command: setup.uid === 0 ? byHand : 'sudo sally uninstall' } };
  }
  const run = async (): Promise<void> => {
    // Another user may have begun to use it since the plan was made.
    const now = await reasonToKeep(options);
    if (now !== undefined) throw new SallyportError('engine_conflict', `the private engine is kept: ${now}`);
    await removePrivateEngine(paths, { environment: setup.childVariables, alsoConfiguration: purge });
  };
  return { step: { thing, run, onlyAfterSuccess: true } };
}

async function reasonToKeep({
  setup,
  paths,
  owners,
  force,
}: PrivateEngineOptions): Promise<string | undefined> {
  if (setup.uid !== 0) return 'only root may remove it';
  if (!paths.separate && !setup.stateIsDefault)
    return 'it serves the machine, and SALLYPORT_STATE_DIR names a state folder other than the default';
  const { state } = await privateEngineStatus(paths);
  if (state !== 'running') {
    return force ? undefined : 'it does not answer, so its content is unknown; `sally setup` starts it';
  }
  const connection = await connect({ kind: 'unix', path: paths.socket });
  const others = await othersObjects(connection, owners);
  return others.length === 0 ? undefined : `it holds objects of others: ${shortList(others)}`;
}

export function shortList(names: readonly string[]): string {
  const shown = names.slice(0, 10).join(', ');
  return names.length > 10 ? `${shown} and ${names.length - 10} more` : shown;
}
