/** What a create would ask of an engine on a machine like this one, found out without a daemon and without an engine. */

import { homedir } from 'node:os';
import { join } from 'node:path';
import { boxBody } from '../engines/docker/box-body.ts';
import { dockerRunLine } from '../engines/docker/docker-run-line.ts';
import { porterVolumeName } from '../engines/docker/porter-volume.ts';
import { defaultImageReference } from '../images/ensure-image.ts';
import { ownerId } from '../lib/owner.ts';
import { placeShadows, planBox, plannedBox } from '../policy/box-plan.ts';
import { workspaceName } from '../policy/names.ts';
import { readPorterBinary } from '../porter/binary.ts';
import { label, ownedLabels } from '../protocol/labels.ts';
import { parseSpec } from '../protocol/parse-spec.ts';
import type { SpecInput } from '../protocol/spec.ts';
import { execEnvironment } from '../sandboxes/exec-environment.ts';
import { lookAtSpec } from '../sandboxes/look-at-spec.ts';
import { freeUid } from '../sandboxes/uid-pool.ts';
import { readSetupEnvironment } from '../setup/config.ts';
import { privateEnginePaths } from '../setup/private-engine/paths.ts';
import { readStateLocation } from './config.ts';

export interface Explained {
  readonly request: unknown;
  readonly dockerRun: string;
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
  readonly notes: readonly string[];
}

/** What is chosen when it is made, shown as what it looks like. */
const anyId = 'sb-0000000000';

export async function explainHere(input: SpecInput): Promise<Explained> {
  const spec = parseSpec(input);
  const { uid, stateDir } = readStateLocation();
  const owner = ownerId(uid, stateDir);
  const looked = await lookAtSpec(spec, homedir());
  const planned = planBox(spec, {
    host: { uid, gid: process.getgid?.() ?? uid, platform: process.platform },
    places: {
      platform: process.platform,
      homes: [homedir()],
      stateDirs: [stateDir],
      engineSockets: [privateEnginePaths(readSetupEnvironment()).socket],
    },
    engine: { name: 'docker', rootless: false },
    freeUid: freeUid(owner, new Set()),
    ...looked,
  });
  const plan = placeShadows(planned, (mountId) => join(stateDir, 'sandboxes', anyId, 'shadow', mountId));
  const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
  const name =
    spec.name ?? (looked.workspace === undefined ? 'sandbox' : workspaceName(looked.workspace.real));
  const { envs: _secret, ...shown } = spec;
  const box = plannedBox(plan, {
    name: `sallyport-${name}-${anyId.slice(3)}`,
    image: spec.image ?? (await defaultImageReference('base', architecture)),
    porterVolume: porterVolumeName((await readPorterBinary(architecture)).hash),
    labels: ownedLabels('sandbox', {
      [label.owner]: owner,
      [label.id]: anyId,
      [label.name]: name,
      [label.spec]: JSON.stringify(shown),
    }),
    endsWithHost: false,
  });
  const request = boxBody(box);
  const env = execEnvironment({ spec, plan, imageEnv: {} }, {}, false);
  return {
    request,
    dockerRun: dockerRunLine(box.name, request),
    ...(spec.command === undefined ? {} : { exec: { argv: spec.command, cwd: plan.workdir, env } }),
    copies: plan.copies.map(({ source, target, excludes: { patterns, from } }) => ({
      source,
      target,
      exclude_patterns: patterns,
      exclude_from: from,
    })),
    notes: plan.notes.map(({ message }) => message),
  };
}
