/** From options to the part of a spec that they say. Paths become absolute here: the daemon has another working directory. */

import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { EgressPresetName } from '../../protocol/egress-preset-names.ts';
import { SallyportError } from '../../protocol/errors.ts';
import type { SpecInput } from '../../protocol/spec.ts';
import type { BoxOptions } from './box-options.ts';
import { copyOf, envFilePairs, envPairs, labelPairs, mountOf, toolOf } from './pairs.ts';

type Workspace = NonNullable<SpecInput['workspace']>;

/** What flags alone say: a workspace may have a mode and leave its path to a file. */
export type SpecFlags = Omit<SpecInput, 'workspace'> & { readonly workspace?: Partial<Workspace> };

/** Where a value was written, for messages: the field of the spec to its flag. */
export const flagNames: Readonly<Record<string, string>> = {
  image: '--image',
  'images.default': '--default-image',
  'images.strict': '--strict-image',
  name: '--name',
  labels: '--label',
  envs: '--env',
  mounts: '--mount',
  copies: '--copy',
  builtin_tools: '--tool',
  ports: '--publish',
  workdir: '--workdir',
  user: '--user',
  'limits.memory': '--memory',
  'limits.cpus': '--cpus',
  'limits.pids': '--pids-limit',
  'limits.disk': '--disk',
  engine: '--engine',
  runtime: '--runtime',
  network: '--network',
  'egress.allow': '--allow',
  'egress.credentials': '--secret',
  'egress.deny': '--deny',
  'egress.presets': '--preset',
  'egress.mode': '--egress',
  'egress.upstream': '--upstream',
  'egress.upstream_secret': '--upstream-secret',
  'workspace.path': '--workspace',
  'workspace.mode': '--workspace-mode',
  'workspace.branch': '--branch',
  'workspace.protect': '--protect',
  'workspace.dangerously_unprotected': '--dangerously-unprotected',
  profile: '--profile',
  idle_ttl: '--idle-ttl',
  max_lifetime: '--max-lifetime',
};

export function specFlags(options: BoxOptions, cwd: string): SpecFlags {
  if (options.worktree === true)
    throw new SallyportError('usage', '--worktree makes a worktree, and this verb makes nothing', {
      advice: 'Name the folder of the worktree with --workspace.',
    });
  const absolute = (path: string): string => absolutePath(path, cwd);
  const mounts = [...(options.mount ?? []), ...(options.volume ?? [])].map((text) => mountOf(text, absolute));
  const envs = envsOf(options, cwd);
  const pids = options.pidsLimit ?? options.pids;
  const limits = {
    ...(options.memory === undefined ? {} : { memory: options.memory }),
    ...(options.cpus === undefined ? {} : { cpus: options.cpus }),
    ...(pids === undefined ? {} : { pids }),
    ...(options.disk === undefined ? {} : { disk: options.disk }),
  };
  const images = {
    ...(options.defaultImage === undefined ? {} : { default: options.defaultImage }),
    ...(options.strictImage === undefined ? {} : { strict: options.strictImage }),
  };
  const workspace = workspaceOf(options, cwd);
  const egress = egressOf(options);
  return {
    ...(options.image === undefined ? {} : { image: options.image }),
    ...(Object.keys(images).length === 0 ? {} : { images }),
    ...(options.name === undefined ? {} : { name: options.name }),
    ...(workspace === undefined ? {} : { workspace }),
    ...(mounts.length === 0 ? {} : { mounts }),
    ...(options.copy === undefined ? {} : { copies: options.copy.map((text) => copyOf(text, absolute)) }),
    ...(options.tool === undefined ? {} : { builtin_tools: options.tool.map(toolOf) }),
    ...(options.publish === undefined ? {} : { ports: [...options.publish] }),
    ...(Object.keys(envs).length === 0 ? {} : { envs }),
    ...(options.label === undefined ? {} : { labels: labelPairs(options.label) }),
    ...(Object.keys(limits).length === 0 ? {} : { limits }),
    ...(options.profile === undefined ? {} : { profile: options.profile }),
    ...(options.engine === undefined ? {} : { engine: options.engine }),
    ...(options.runtime === undefined ? {} : { runtime: options.runtime }),
    ...(options.user === undefined ? {} : { user: options.user }),
    ...(options.network === undefined ? {} : { network: networkOf(options.network) }),
    ...(egress === undefined ? {} : { egress }),
    ...(options.workdir === undefined ? {} : { workdir: options.workdir }),
    ...(options.idleTtl === undefined ? {} : { idle_ttl: options.idleTtl }),
    ...(options.maxLifetime === undefined ? {} : { max_lifetime: options.maxLifetime }),
  };
}

function egressOf({
  allow,
  deny,
  preset,
  egress,
  upstream,
  upstreamSecret,
  secret,
}: BoxOptions): SpecInput['egress'] | undefined {
  const said: NonNullable<SpecInput['egress']> = {
    ...(allow === undefined ? {} : { allow: [...allow] }),
    ...(secret === undefined ? {} : { credentials: [...secret] }),
    ...(deny === undefined ? {} : { deny: [...deny] }),
    // Whether there is such a preset is for the schema to say.
    ...(preset === undefined ? {} : { presets: [...preset] as EgressPresetName[] }),
    ...(egress === undefined ? {} : { mode: egress }),
    ...(upstream === undefined ? {} : { upstream }),
    ...(upstreamSecret === undefined ? {} : { upstream_secret: upstreamSecret }),
  };
  return Object.keys(said).length === 0 ? undefined : said;
}

function workspaceOf(options: BoxOptions, cwd: string): Partial<Workspace> | undefined {
  const { workspaceMode, protect, dangerouslyUnprotected, branch, worktree } = options;
  // A branch is one of a repository: of this folder, unless another one is named.
  const workspace = options.workspace ?? (branch === undefined ? undefined : true);
  const clone = branch === undefined || worktree === true ? {} : { mode: 'clone' as const, branch };
  const said: Partial<Workspace> = {
    ...(workspace === undefined ? {} : { path: workspace === true ? cwd : absolutePath(workspace, cwd) }),
    ...clone,
    ...(workspaceMode === undefined ? {} : { mode: workspaceMode }),
    ...(protect === undefined ? {} : { protect: [...protect] }),
    ...(dangerouslyUnprotected === undefined ? {} : { dangerously_unprotected: [...dangerouslyUnprotected] }),
  };
  return Object.keys(said).length === 0 ? undefined : said;
}

/** What files say first, then the flags themselves: the nearer word wins. */
export function envsOf(
  { env = [], envFile = [] }: Pick<BoxOptions, 'env' | 'envFile'>,
  cwd: string,
): Record<string, string> {
  const fromFiles = envFile.map((file) => envFilePairs(file, readEnvFile(file, cwd)));
  return Object.assign({}, ...fromFiles, envPairs(env)) as Record<string, string>;
}

function readEnvFile(file: string, cwd: string): string {
  try {
    return readFileSync(absolutePath(file, cwd), 'utf8');
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new SallyportError('usage', `--env-file ${file} cannot be read: ${reason}`, {
      advice: 'Name a file of NAME=value lines.',
      cause: error,
    });
  }
}

export function absolutePath(path: string, cwd: string): string {
  if (path === '~' || path.startsWith('~/')) return join(homedir(), path.slice(1));
  return resolve(cwd, path);
}

/** Here and not only in the daemon: the name of a network is a habit, and the answer is where to go instead. */
function networkOf(value: string): 'none' {
  if (value === 'none') return value;
  throw new SallyportError(
    'usage',
    `--network ${value}: a sandbox has no network card, so only none exists`,
    {
      advice: 'Leave it out. What a sandbox may reach is opened by name: `--allow host`.',
    },
  );
}
