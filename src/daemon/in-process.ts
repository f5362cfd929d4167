/** What a create would ask of an engine on a machine like this one, found out without a daemon and without an engine. */

import { lstatSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { boxBody } from '../engines/docker/box-body.ts';
import { dockerBoxEngine } from '../engines/docker/box-engine.ts';
import { readEngineEnvironment } from '../engines/docker/config.ts';
import { discoverEngine } from '../engines/docker/discover.ts';
import { dockerRunLine } from '../engines/docker/docker-run-line.ts';
import { porterVolumeName } from '../engines/docker/porter-volume.ts';
import { serviceBody } from '../engines/docker/service-body.ts';
import { defaultImageReference } from '../images/ensure-image.ts';
import { rememberedEngine } from '../lib/engine-choice.ts';
import { engineFolderPath } from '../lib/engine-folders.ts';
import { ownerId } from '../lib/owner.ts';
import { runningPrograms } from '../lib/running-programs.ts';
import { placeShadows, planBox, plannedBox } from '../policy/box-plan.ts';
import { requireSupported } from '../policy/engine-support.ts';
import { workspaceName } from '../policy/names.ts';
import { serviceCapabilities, type WantedService, wantedServices } from '../policy/services.ts';
import { expectedRuntime, notKnown, runtimeChoice } from '../policy/strongest-runtime.ts';
import { readPorterBinary } from '../porter/binary.ts';
import type { BoxRequest } from '../protocol/box.ts';
import { defaultImage } from '../protocol/default-image.ts';
import { dockerfileName } from '../protocol/dockerfile-name.ts';
import { bubblewrapChoice } from '../protocol/engine-environment.ts';
import { strongestRuntime } from '../protocol/isolation-level.ts';
import { label, ownedLabels } from '../protocol/labels.ts';
import { parseSpec } from '../protocol/parse-spec.ts';
import type { Spec, SpecInput } from '../protocol/spec.ts';
import { networkOf } from '../sandboxes/box-services.ts';
import { execEnvironment } from '../sandboxes/exec-environment.ts';
import { lookAtSpec } from '../sandboxes/look-at-spec.ts';
import { homeOf } from '../sandboxes/materialise.ts';
import type { EngineFacts } from '../sandboxes/ports.ts';
import type { SandboxRecord } from '../sandboxes/records.ts';
import { serviceRequest } from '../sandboxes/service-container.ts';
import { specLabel } from '../sandboxes/spec-label.ts';
import { freeUid } from '../sandboxes/uid-pool.ts';
import { readSetupEnvironment } from '../setup/config.ts';
import { privateEnginePaths } from '../setup/private-engine/paths.ts';
import { readDaemonConfig, readStateLocation } from './config.ts';
import { bubblewrapParts, type DescribedBox, type EngineParts } from './engine-parts.ts';

export interface Explained {
  readonly request: unknown;
  /** Of a container engine. */
  readonly dockerRun?: string;
  /** Of bubblewrap. */
  readonly commandLine?: string;
  /** The command, where there is one. */
  readonly exec?: {
    readonly argv: readonly string[];
    readonly cwd: string;
    readonly env: Readonly<Record<string, string>>;
  };
  /** What is copied in before it is ready. */
  readonly copies: readonly {
    readonly source: string;
    readonly target: string;
    readonly exclude_patterns: readonly string[];
    readonly exclude_from: readonly string[];
  }[];
  /** Its services, in the order in which they are started. */
  readonly services: readonly {
    readonly name: string;
    readonly required: boolean;
    readonly request: unknown;
  }[];
  readonly notes: readonly string[];
}

/** What is chosen when it is made, shown as what it looks like. */
const anyId = 'sb-0000000000';
/** As of the newest engines; which one there is, is not asked. */
const anyTraits = { sysctls: {} };

export async function explainHere(input: SpecInput): Promise<Explained> {
  const spec = parseSpec(input);
  const { uid, stateDir: shared } = readStateLocation();
  const isBubblewrap = await wouldUseBubblewrap(spec, shared);
  const key = isBubblewrap ? bubblewrapChoice.key : readDaemonConfig().choice.key;
  const stateDir = engineFolderPath(shared, key);
  const owner = ownerId(uid, stateDir);
  const bubblewrap = isBubblewrap ? await bubblewrapParts({ stateDir, uid }) : undefined;
  const engine = (await bubblewrap?.engine.facts()) ?? {
    name: 'docker',
    rootless: false,
    defaultRuntime: 'runc',
  };
  const runtime = await expectedHere(spec, bubblewrap);
  const asked = runtime === undefined ? spec : { ...spec, runtime: runtime.name };
  requireSupported({ ...asked, engine: 'auto' }, engine);
  const looked = await lookAtSpec(spec, homedir(), {
    isPlaceholder: () => false,
    programs: runningPrograms(),
  });
  const planned = planBox(asked, {
    host: { uid, gid: process.getgid?.() ?? uid, platform: process.platform },
    places: {
      platform: process.platform,
      homes: [homedir()],
      stateDirs: [shared],
      engineSockets: [privateEnginePaths(readSetupEnvironment()).socket],
      programs: runningPrograms(),
    },
    engine,
    freeUid: freeUid(owner, new Set()),
    ...looked,
  });
  const plan = placeShadows(planned, (mountId) => join(stateDir, 'sandboxes', anyId, 'shadow', mountId));
  const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
  const name =
    spec.name ?? (looked.workspace === undefined ? 'sandbox' : workspaceName(looked.workspace.real));
  const containerName = `sallyport-${name}-${anyId.slice(3)}`;
  const { path: folder } = spec.workspace ?? {};
  const isBuilt =
    folder !== undefined && lstatSync(join(folder, dockerfileName), { throwIfNoEntry: false }) !== undefined;
  const named = spec.image ?? (isBuilt ? undefined : defaultImage(spec));
  const box = plannedBox(plan, {
    name: containerName,
    image: bubblewrap === undefined ? (named ?? (await defaultImageReference('base', architecture))) : 'host',
    porterVolume: porterVolumeName((await readPorterBinary(architecture)).hash),
    labels: ownedLabels('sandbox', {
      [label.owner]: owner,
      [label.id]: anyId,
      [label.name]: name,
      [label.spec]: specLabel(spec),
      ...(runtime?.name === undefined ? {} : { [label.runtime]: runtime.name }),
    }),
    endsWithHost: false,
    network: networkOf({ spec, containerName }),
  });
  const { request, docker_run, command_line } =
    (await bubblewrap?.describeBox(box, homeOf(plan))) ?? docker(box);
  const env = execEnvironment({ spec, plan, imageEnv: {} }, {}, false);
  return {
    request,
    ...(docker_run === undefined ? {} : { dockerRun: docker_run }),
    ...(command_line === undefined ? {} : { commandLine: command_line }),
    ...(spec.command === undefined ? {} : { exec: { argv: spec.command, cwd: plan.workdir, env } }),
    copies: plan.copies.map(({ source, target, excludes: { patterns, from } }) => ({
      source,
      target,
      exclude_patterns: patterns,
      exclude_from: from,
    })),
    services: wantedServices(spec).map((service) => ({
      name: service.name,
      required: service.required,
      request: explainService(service, { containerName, name, owner, plan }),
    })),
    notes: [...plan.notes.map(({ message }) => message), ...(runtime?.notes ?? [])],
  };
}

/** A runtime, where one is known, and what to say about it. */
interface ExpectedRuntime {
  readonly name: string | undefined;
  readonly notes: readonly string[];
}

/** Which runtime `strongest` would become. Asks an engine that runs, and starts nothing. Undefined: the spec does not leave it open. */
async function expectedHere(
  spec: Spec,
  bubblewrap: EngineParts | undefined,
): Promise<ExpectedRuntime | undefined> {
  if (spec.runtime !== strongestRuntime) return undefined;
  const engine = bubblewrap === undefined ? await dockerHere() : await bubblewrap.engine.facts();
  if (engine === undefined) return { name: undefined, notes: [notKnown('no engine answers')] };
  const choice = runtimeChoice(spec, engine);
  if (choice === undefined) return undefined;
  const { runtime, note } = expectedRuntime(choice.candidates, () => 'unknown');
  return { name: runtime, notes: [...choice.notes.map(({ message }) => message), note] };
}

/** What the engine that a daemon would use says of itself. Undefined: none answers. */
async function dockerHere(): Promise<EngineFacts | undefined> {
  const { socket: privateSocket } = privateEnginePaths(readSetupEnvironment());
  const { found } = await discoverEngine(readEngineEnvironment(), { privateSocket });
  return found === undefined ? undefined : await dockerBoxEngine(found.connection, readPorterBinary).facts();
}

function docker(box: BoxRequest): DescribedBox {
  const request = boxBody(box);
  return { request, docker_run: dockerRunLine(box.name, request) };
}

/** As a daemon would choose. What it would ask a person about is shown as Docker. */
async function wouldUseBubblewrap({ engine }: Spec, stateDir: string): Promise<boolean> {
  const wanted = engine === undefined || engine === 'auto' ? readDaemonConfig().engine : engine;
  if (wanted !== 'auto') return wanted === 'bubblewrap';
  if (rememberedEngine(stateDir) !== 'bubblewrap') return false;
  return (await discoverEngine(readEngineEnvironment())).found === undefined;
}

/** Its image is not looked at: it is shown with the most that one that begins as root keeps. Values of variables are not shown. */
function explainService(
  service: WantedService,
  made: Pick<SandboxRecord, 'containerName' | 'name' | 'plan'> & { readonly owner: string },
): unknown {
  const hidden = Object.fromEntries(Object.keys(service.envs ?? {}).map((key) => [key, '***']));
  const request = serviceRequest(
    { ...made, id: anyId },
    { ...service, envs: hidden },
    { image: service.image, capabilities: serviceCapabilities(''), owner: made.owner },
  );
  return serviceBody(request, anyTraits);
}
