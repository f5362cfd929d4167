/** Plans the uninstallation for the calling user: inspects daemons, engines, state and program, and changes nothing. */

import { existsSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { engineEnvironmentOf } from '../../engines/docker/config.ts';
import { discoverEngine } from '../../engines/docker/discover.ts';
import type { EngineConnection } from '../../engines/docker/wire/connection.ts';
import { forgetInstalled, installedByUs } from '../../images/installed-packages.ts';
import type { EngineFolder } from '../../lib/engine-folders.ts';
import { type Installation, installationOf } from '../../lib/installation.ts';
import { ownerId } from '../../lib/owner.ts';
import { packageInfo } from '../../lib/package-root.ts';
import { isSallyportError, SallyportError } from '../../protocol/errors.ts';
import { label } from '../../protocol/labels.ts';
import { systemKeyring } from '../../store/keyring.ts';
import { openSecrets } from '../../store/secrets.ts';
import { readSetupEnvironment } from '../config.ts';
import { type PrivateEnginePaths, privateEnginePaths } from '../private-engine/paths.ts';
import { readProcess, waitUntilGone } from '../processes.ts';
import { ownedObjects, sharedCaches } from './owned-objects.ts';
import type { Plan, Step, Thing } from './plan.ts';
import { privateEnginePart, shortList } from './private-engine-part.ts';
import { removalLine, removeArchiveProgram } from './program-files.ts';
import { listStateFiles, removeStateFiles } from './state-files.ts';

/** An engine that was used, and its daemon. */
export interface UsedEngine extends EngineFolder {
  readonly daemon: DaemonSide;
}

/** Calls to the daemon of an engine, which is started on demand. */
export interface DaemonSide {
  /** Of the one that runs. */
  pid(): Promise<number | undefined>;
  sandboxes(): Promise<readonly KnownSandbox[]>;
  /** With `force` also with changes that exist nowhere else. */
  remove(name: string, options: { readonly force: boolean }): Promise<void>;
  stop(): Promise<void>;
}

export interface KnownSandbox {
  readonly id: string;
  readonly name: string;
  /** Changes that exist nowhere else; undefined: unknown. */
  readonly changes: number | undefined;
}

export interface UninstallOptions {
  /** Also secrets, audit and the user's configuration. */
  readonly purge: boolean;
  readonly force: boolean;
  /** As the client of the daemon has it. */
  readonly stateDir: string;
  readonly configDir: string;
  readonly signal: AbortSignal;
}

export interface UninstallPlan extends Plan {
  /** Sandboxes that would be lost with what exists nowhere else. */
  readonly changed: readonly KnownSandbox[];
  /** Why the sandboxes could not be inspected. */
  readonly unseen?: SallyportError;
}

const daemonEndsWithinMs = 30_000;

export async function planUninstall(
  used: readonly UsedEngine[],
  options: UninstallOptions,
): Promise<UninstallPlan> {
  const setup = readSetupEnvironment();
  const paths = privateEnginePaths(setup);
  const owners = used.map(({ path }) => ownerId(setup.uid, path));
  const engine = await privateEnginePart({ setup, paths, owners, ...options });
  const parts: EnginePart[] = [];
  for (const one of used) {
    const owner = ownerId(setup.uid, one.path);
    parts.push(
      await enginePart(one, { owner, paths, removesPrivate: engine.step !== undefined, ...options }),
    );
  }
  const unseen = parts.find((part) => part.unseen !== undefined)?.unseen;
  const installation = installationOf(packageInfo().root);
  const files = await listStateFiles(options.stateDir, options);
  const servesMachine = setup.uid === 0 && !paths.separate && setup.stateIsDefault;
  const packages = servesMachine ? await installedByUs() : [];
  return {
    changed: parts.flatMap(({ sandboxes }) => sandboxes.filter(({ changes }) => changes !== 0)),
    ...(unseen === undefined ? {} : { unseen }),
    steps: [
      ...parts.flatMap(({ steps }) => steps),
      ...(engine.step === undefined ? [] : [engine.step]),
      ...purgeSteps(options, files.removes),
      ...stateSteps(options, files.removes, { uid: setup.uid, servesMachine }),
      ...programSteps(installation),
    ],
    keeps: [
      ...(engine.keep === undefined ? [] : [engine.keep]),
      ...parts.flatMap(({ keeps }) => keeps),
      ...filesKept(options, files),
      ...packagesKept(packages),
      ...programKept(installation),
    ],
  };
}

/** Of one engine. */
interface EnginePart extends Plan {
  readonly sandboxes: readonly KnownSandbox[];
  readonly unseen?: SallyportError;
}

async function enginePart(
  { path, key, variables, daemon }: UsedEngine,
  options: UninstallOptions & {
    readonly owner: string;
    readonly paths: PrivateEnginePaths;
    /** The uninstallation removes the private engine with all that is in it. */
    readonly removesPrivate: boolean;
  },
): Promise<EnginePart> {
  const { owner, paths, signal } = options;
  const { sandboxes, unseen } = await lookAtSandboxes(daemon, { stateDir: path, signal }, owner);
  // Without a container engine there is nothing but the sandboxes.
  const connection =
    key === 'bubblewrap'
      ? undefined
      : (await discoverEngine(engineEnvironmentOf(variables), { privateSocket: paths.socket, signal })).found
          ?.connection;
  const isPrivate = options.removesPrivate && connection?.endpoint === `unix://${paths.socket}`;
  return {
    sandboxes,
    ...(unseen === undefined ? {} : { unseen }),
    steps: [
      ...(unseen === undefined ? [] : [failingStep(unseen, owner)]),
      ...sandboxes.map(({ name }) => step('sandbox', name, () => removeIfThere(daemon, name, options))),
      ...(await daemonSteps(daemon)),
      ...(connection === undefined ? [] : [await objectsStep(connection, owner, sandboxes)]),
    ],
    keeps: key === 'bubblewrap' ? [] : await cachesKept(connection, isPrivate, owner),
  };
}

const step = (kind: string, name: string, run: () => Promise<void>, onlyAfterSuccess = false): Step => ({
  thing: { kind, name },
  run,
  onlyAfterSuccess,
});

/** The sandbox of a `sally run` that has just ended may be removed by the daemon itself after it was listed. */
export async function removeIfThere(
  daemon: Pick<DaemonSide, 'remove'>,
  name: string,
  options: { readonly force: boolean },
): Promise<void> {
  try {
    await daemon.remove(name, options);
  } catch (error) {
    if (!isSallyportError(error, 'sandbox_not_found')) throw error;
  }
}

/** Starts no daemon where there are no records of sandboxes. */
async function lookAtSandboxes(
  daemon: DaemonSide,
  { stateDir, signal }: Pick<UninstallOptions, 'stateDir' | 'signal'>,
  owner: string,
): Promise<{ readonly sandboxes: readonly KnownSandbox[]; readonly unseen?: SallyportError }> {
  const records = await readdir(join(stateDir, 'sandboxes')).catch(() => []);
  if (records.length === 0 && (await daemon.pid()) === undefined) return { sandboxes: [] };
  try {
    return { sandboxes: await daemon.sandboxes() };
  } catch (cause) {
    if (signal.aborted || !isSallyportError(cause)) throw cause;
    const unseen = new SallyportError(cause.code, `the sandboxes cannot be inspected: ${cause.message}`, {
      cause,
      details: { owner },
      advice: `${cause.advice} --force removes all but the sandboxes.`,
    });
    return { sandboxes: [], unseen };
  }
}

/** With `--force` everything but the sandboxes is removed; this step reports them as left. */
function failingStep(unseen: SallyportError, owner: string): Step {
  const command = `docker rm -f $(docker ps -aq --filter label=${label.owner}=${owner})`;
  const thing = { kind: 'sandboxes', name: `of owner ${owner}`, command };
  return { thing, run: () => Promise.reject(unseen), onlyAfterSuccess: false };
}

async function daemonSteps(daemon: DaemonSide): Promise<readonly Step[]> {
  const pid = await daemon.pid();
  if (pid === undefined) return [];
  return [
    step('daemon', `pid ${pid}`, async () => {
      const facts = await readProcess(pid);
      await daemon.stop();
      // It writes to the state folder until its end.
      if (facts === undefined || (await waitUntilGone([facts], daemonEndsWithinMs))) return;
      throw new SallyportError('daemon_stopping', `the daemon (pid ${pid}) does not end`, {
        advice: `Run \`kill ${pid}\`, then run this again.`,
      });
    }),
  ];
}

/** Objects that the daemon no longer knows. */
async function objectsStep(
  connection: EngineConnection,
  owner: string,
  sandboxes: readonly KnownSandbox[],
): Promise<Step> {
  const known = new Set(sandboxes.map(({ id }) => id));
  const others = (await ownedObjects(connection, owner)).filter(
    ({ sandbox }) => sandbox === undefined || !known.has(sandbox),
  );
  const names = others.map(({ kind, name }) => `${kind} ${name}`);
  const shown = names.length === 0 ? 'nothing besides the sandboxes' : shortList(names);
  return step('objects', `${shown} (label owner ${owner}, ${connection.endpoint})`, async () => {
    for (const object of await ownedObjects(connection, owner)) await object.remove();
  });
}

function purgeSteps(
  { purge, stateDir, configDir }: UninstallOptions,
  files: readonly string[],
): readonly Step[] {
  if (!purge) return [];
  return [
    ...(files.includes('secrets.json')
      ? [step('secrets', join(stateDir, 'secrets.json'), () => forgetSecrets(stateDir))]
      : []),
    ...(existsSync(configDir)
      ? [step('configuration', configDir, () => rm(configDir, { recursive: true, force: true }))]
      : []),
  ];
}

/** Values in the keyring of the system go with their names. */
async function forgetSecrets(stateDir: string): Promise<void> {
  const secrets = openSecrets(stateDir, () => new Date(), systemKeyring(process.platform));
  const left: string[] = [];
  for (const { name } of secrets.list()) {
    await secrets.remove(name).catch((error: unknown) => {
      if (!isSallyportError(error, 'keyring_unavailable')) throw error;
      left.push(`${error.message}. ${error.advice}`);
    });
  }
  if (left.length > 0) throw new SallyportError('keyring_unavailable', left.join('; '));
}

function stateSteps(
  { stateDir, purge }: UninstallOptions,
  removes: readonly string[],
  { uid, servesMachine }: { readonly uid: number; readonly servesMachine: boolean },
): readonly Step[] {
  if (!existsSync(stateDir)) return [];
  const name = removes.includes('audit') ? `${stateDir}, with the audit` : stateDir;
  const run = async (): Promise<void> => {
    await removeStateFiles(stateDir, { purge, uid });
    if (servesMachine) await forgetInstalled();
  };
  return [step('state folder', name, run, true)];
}

function programSteps(installation: Installation): readonly Step[] {
  if (installation.kind !== 'archive') return [];
  const { prefix } = installation;
  return [step('program', join(prefix, 'lib/sallyport'), () => removeArchiveProgram(prefix), true)];
}

function programKept(installation: Installation): readonly Thing[] {
  const thing = { kind: 'program', name: packageInfo().root };
  if (installation.kind === 'checkout') return [{ ...thing, why: 'it runs from a checkout' }];
  const command = removalLine(installation);
  return command === undefined ? [] : [{ ...thing, why: 'npm installed it', command }];
}

function packagesKept(packages: readonly string[]): readonly Thing[] {
  if (packages.length === 0) return [];
  const why = 'Debian packages that Sallyport installed; other programs may use them by now';
  return [
    { kind: 'packages', name: packages.join(', '), why, command: `apt-get remove ${packages.join(' ')}` },
  ];
}

async function cachesKept(
  connection: EngineConnection | undefined,
  isOwnEngine: boolean,
  owner: string,
): Promise<readonly Thing[]> {
  if (isOwnEngine) return [];
  if (connection === undefined) {
    const command = `docker ps -a --filter label=${label.owner}=${owner}`;
    return [
      {
        kind: 'objects',
        name: 'in an engine',
        why: 'no engine answers, so its objects are unknown',
        command,
      },
    ];
  }
  const count = await sharedCaches(connection);
  if (count === 0) return [];
  const command = `docker image ls --filter label=${label.owned}; docker volume ls --filter label=${label.owned}`;
  const name = `${count} images and volumes in ${connection.endpoint}`;
  return [{ kind: 'caches', name, why: 'all users of the engine share them', command }];
}

function filesKept(
  { stateDir, configDir, purge }: UninstallOptions,
  { keeps, foreign }: { readonly keeps: readonly string[]; readonly foreign: readonly string[] },
): readonly Thing[] {
  const why = '--purge removes it';
  const hasConfig = !purge && existsSync(configDir);
  return [
    ...keeps.map((name) => ({
      kind: name.startsWith('audit') ? 'audit' : 'secrets',
      name: join(stateDir, name),
      why,
    })),
    ...(hasConfig ? [{ kind: 'configuration', name: configDir, why }] : []),
    ...foreign.map((name) => ({ kind: 'file', name: join(stateDir, name), why: "it is not Sallyport's" })),
  ];
}
