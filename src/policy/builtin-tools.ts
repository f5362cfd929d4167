/**
 * The built-in tools as data (A4): which folders of the user's home each of them brings, and where they are inside. Who asks for
 * one chooses from this table and cannot point it elsewhere. What is held in these folders is in `tool-names.ts`.
 */

import {
  type BuiltinToolMode,
  type BuiltinToolName,
  builtinToolNames,
  toolMode,
  toolName,
  type WantedTool,
} from '../protocol/builtin-tool-names.ts';
import { toolNames } from './tool-names.ts';

export interface ToolMount {
  /** Several tools may bring the same one; it is mounted once. */
  readonly id: string;
  /** Below the user's home on the host. */
  readonly source: string;
  /** Below the sandbox's home, unless it is absolute. */
  readonly target: string;
  readonly writable: boolean;
  /** The tool is of no use without it, so a missing one is an error. */
  readonly required: boolean;
}

export interface BuiltinTool {
  readonly mounts: readonly ToolMount[];
  readonly sockets: readonly PlannedSocket[];
  /** Real credentials of the user become visible inside. */
  readonly bringsCredentials: boolean;
}

/** A socket of the host that is wanted inside. */
export interface PlannedSocket {
  readonly id: 'ssh-agent';
}

const inHome = (id: string, path: string, more: Partial<ToolMount> = {}): ToolMount => ({
  id,
  source: path,
  target: path,
  writable: true,
  required: false,
  ...more,
});

export const builtinTools: Readonly<Record<BuiltinToolName, BuiltinTool>> = {
  claude: {
    mounts: [inHome('claude', '.claude', { required: true })],
    sockets: [],
    bringsCredentials: true,
  },
  codex: {
    mounts: [inHome('codex', '.codex', { required: true }), inHome('agents', '.agents', { required: true })],
    sockets: [],
    bringsCredentials: true,
  },
  git: {
    mounts: [inHome('gh', '.config/gh', { writable: false })],
    sockets: [{ id: 'ssh-agent' }],
    bringsCredentials: true,
  },
  uv: {
    mounts: [inHome('uv-cache', '.cache/uv'), inHome('uv-data', '.local/share/uv')],
    sockets: [],
    bringsCredentials: false,
  },
  npm: { mounts: [inHome('npm', '.npm')], sockets: [], bringsCredentials: false },
  apt: {
    mounts: [inHome('apt', '.cache/sallyport-apt', { target: '/var/cache/apt/archives' })],
    sockets: [],
    bringsCredentials: false,
  },
};

export interface WantedMount extends ToolMount {
  /** The first tool that brings it. */
  readonly tool: BuiltinToolName;
  /** `shared` only if every tool that brings it is. */
  readonly mode: BuiltinToolMode;
}

/** In the order of the tools, each once. */
export function wantedMounts(tools: readonly WantedTool[]): readonly WantedMount[] {
  const all = tools.flatMap((each) => {
    const tool = toolName(each);
    return builtinTools[tool].mounts.map((mount) => ({ ...mount, tool, mode: toolMode(each) }));
  });
  const isProtected = (id: string): boolean =>
    all.some((mount) => mount.id === id && mount.mode === 'protected');
  return all
    .filter(({ id }, index) => all.findIndex((other) => other.id === id) === index)
    .map((mount) => ({ ...mount, mode: isProtected(mount.id) ? 'protected' : 'shared' }));
}

/** Places of credentials that a tool serves though nothing of them is mounted: the agent signs in their stead. */
const servedBySocket: Readonly<Partial<Record<string, BuiltinToolName>>> = { '.ssh': 'git' };

/** The tool that is there for what lies at this place of a home. */
export function toolFor(placeInHome: string): BuiltinToolName | undefined {
  const byMount = builtinToolNames.find((tool) =>
    builtinTools[tool].mounts.some(
      ({ source }) => placeInHome === source || placeInHome.startsWith(`${source}/`),
    ),
  );
  return byMount ?? servedBySocket[placeInHome];
}

/** Git worktrees of projects: somebody works in one, and it is protected as every live workspace. */
const notPrograms: ReadonlySet<string> = new Set(['.codex/worktrees']);

/** Places in a home that the host executes from by way of these tools. */
export const executedInHome: readonly string[] = toolNames
  .filter(({ name }) => !name.includes('*'))
  .map(({ mount, name }) => {
    const all = builtinToolNames.flatMap((tool) => builtinTools[tool].mounts);
    const source = all.find(({ id }) => id === mount)?.source ?? '';
    return name === '.' ? source : `${source}/${name}`;
  })
  .filter((place) => !notPrograms.has(place));
