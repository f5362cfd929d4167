/** `sally uninstall`: shows what it removes and what it keeps, asks, then removes. A failed step does not stop the others. */

import { dirname } from 'node:path';
import { readConfigEnvironment } from '../../config/config.ts';
import { type EngineFolder, listEngineFolders } from '../../lib/engine-folders.ts';
import { SallyportError } from '../../protocol/errors.ts';
import { DaemonClient, segment } from '../../sdk/client.ts';
import { readClientEnvironment } from '../../sdk/config.ts';
import {
  type DaemonSide,
  type KnownSandbox,
  planUninstall,
  type UninstallPlan,
} from '../../setup/uninstall/here.ts';
import { carryOut, type Outcome, type Thing } from '../../setup/uninstall/plan.ts';
import { askYesNo } from '../ask.ts';
import type { CliContext } from '../context.ts';
import { engineClient } from '../engine-clients.ts';
import { exitCode } from '../exit-codes.ts';
import { note, print, printJson } from '../output.ts';
import { progressLine } from '../progress-line.ts';
import { SandboxCalls } from '../sandbox-calls.ts';
import { table } from '../table.ts';
import { healthOf } from './version.ts';

export interface UninstallCommandOptions {
  readonly yes?: true;
  readonly dryRun?: true;
  readonly purge?: true;
  readonly force?: true;
  readonly json?: true;
}

export async function uninstallCommand(
  options: UninstallCommandOptions,
  { signal }: CliContext,
): Promise<number> {
  const force = options.force === true;
  const { stateDir, choose } = readClientEnvironment();
  const used = listEngineFolders(stateDir);
  const folders = used.length === 0 ? [{ ...choose(), path: stateDir }] : used;
  const engines = folders.map((folder) => {
    const client = new DaemonClient({ stateDir }, { choice: { ...folder, mayFallBack: false } });
    return { ...folder, calls: new SandboxCalls(client) };
  });
  try {
    const sides = engines.map(({ calls, ...engine }) => ({
      ...engine,
      daemon: daemonSide(engine, calls, signal),
    }));
    const plan = await planUninstall(sides, {
      purge: options.purge === true,
      force,
      stateDir,
      configDir: dirname(readConfigEnvironment().userFile),
      signal,
    });
    const planned = plan.steps.map(({ thing }) => thing);
    const isDry = options.dryRun === true;
    if (isDry && options.json === true)
      printJson({ dry_run: true, removed: planned, kept: plan.keeps, failed: [] });
    else if (options.json !== true) showPlan(planned, plan.keeps);
    if (!force) refuseToLose(plan);
    if (isDry) return exitCode.ok;
    if (options.yes !== true && !(await agreed(signal))) {
      note('nothing was removed');
      return exitCode.failed;
    }
    return finish(plan, await removeAll(plan, force), options);
  } finally {
    for (const { calls } of engines) calls.close();
  }
}

/** Compares copied workspaces with the host: changes in them may exist nowhere else. */
function daemonSide(engine: EngineFolder, calls: SandboxCalls, signal: AbortSignal): DaemonSide {
  return {
    pid: async () => await pidOf(engine, signal),
    sandboxes: async () => {
      const known: KnownSandbox[] = [];
      for (const { id, name, workspace } of await calls.list([], { signal })) {
        const isCopy = workspace?.mode === 'copy' || workspace?.mode === 'clone';
        known.push({ id, name, changes: isCopy ? await countChanges(calls, name, signal) : 0 });
      }
      return known;
    },
    remove: async (name, { force }) => void (await calls.remove(name, { force })),
    stop: () => calls.client.shutdown(),
  };
}

/** Of the daemon that runs; starts none. */
async function pidOf(engine: EngineFolder, signal: AbortSignal): Promise<number | undefined> {
  const client = engineClient(engine);
  try {
    return (await healthOf(client, signal))?.pid;
  } finally {
    client.close();
  }
}

async function countChanges(
  calls: SandboxCalls,
  name: string,
  signal: AbortSignal,
): Promise<number | undefined> {
  try {
    const path = `/v1/sandboxes/${segment(name)}/changes`;
    const { changes } = await calls.client.json<{ changes: readonly unknown[] }>('GET', path, { signal });
    return changes.length;
  } catch (error) {
    if (signal.aborted) throw error;
    return undefined;
  }
}

function refuseToLose({ changed, unseen }: UninstallPlan): void {
  if (unseen !== undefined) throw unseen;
  if (changed.length === 0) return;
  const list = changed.map(({ name, changes }) => `${name} (${changes ?? 'unknown'})`).join(', ');
  throw new SallyportError('sandbox_changed', `sandboxes hold changes that exist nowhere else: ${list}`, {
    details: { sandboxes: changed.map(({ name }) => name) },
    advice: 'Show them with `sally diff <name>`, bring them back with `sally apply <name>`, or add --force.',
  });
}

async function agreed(signal: AbortSignal): Promise<boolean> {
  if (process.stdin.isTTY && process.stderr.isTTY) return await askYesNo('Remove all of it?', signal);
  throw new SallyportError('usage', 'nothing was removed: there is no terminal for the question', {
    advice: 'Add --yes to agree to the list above; --dry-run only shows it.',
  });
}

async function removeAll({ steps }: UninstallPlan, force: boolean): Promise<Outcome> {
  const line = progressLine();
  try {
    const onStep = ({ kind, name }: Thing): void =>
      line.report({ step: 'uninstall', message: `${kind} ${name}` });
    return await carryOut(steps, { force, onStep });
  } finally {
    line.done();
  }
}

function finish({ keeps }: UninstallPlan, outcome: Outcome, { json }: UninstallCommandOptions): number {
  const { removed, failed } = outcome;
  if (json === true) printJson({ dry_run: false, removed, kept: keeps, failed });
  for (const { kind, name, why, command } of failed) {
    note(`${kind} ${name} is left: ${why}`);
    if (command !== undefined) note(`  by hand: ${command}`);
  }
  if (failed.length > 0) {
    note('run `sally uninstall` again when that is fixed');
    return exitCode.failed;
  }
  const program = keeps.find(({ kind }) => kind === 'program');
  if (json !== true) print('Sallyport is removed from this machine');
  if (program?.command !== undefined)
    note(`the program itself is still there; \`${program.command}\` removes it`);
  return exitCode.ok;
}

function showPlan(removes: readonly Thing[], keeps: readonly Thing[]): void {
  const rows = [
    ...removes.map(({ kind, name }) => ['remove', kind, name, '']),
    ...keeps.map(({ kind, name, why = '', command }) => [
      'keep',
      kind,
      name,
      command === undefined ? why : `${why}: ${command}`,
    ]),
  ];
  for (const row of table(['ACTION', 'WHAT', 'NAME', 'NOTE'], rows)) print(row);
}
