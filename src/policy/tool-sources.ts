/**
 * What the built-in tools of a spec bring (A4, A6): binds where that is safe, with what the host executes in them held; daemon-owned
 * copies where it is not; and notes of what was left out or becomes visible. Pure.
 */

import type { BoxMount } from '../protocol/box.ts';
import { type BuiltinToolName, toolMode, toolName, type WantedTool } from '../protocol/builtin-tool-names.ts';
import type { Spec } from '../protocol/spec.ts';
import type { PathFacts, Source } from './box-plan.ts';
import { type UserNote, userHome } from './box-user.ts';
import { builtinTools, type PlannedSocket, type WantedMount, wantedMounts } from './builtin-tools.ts';
import { refuse } from './copy-sources.ts';
import { type HostPlaces, requireAllowedSource } from './forbidden-sources.ts';
import type { HeldFolder, HeldPaths, Stub } from './held-paths.ts';
import { isWithin } from './paths.ts';
import { isCopiedWhole, isExecutedFrom, leftOutOfCopy, ownNames } from './tool-names.ts';
import { protectTool, type ToolLook } from './tool-protection.ts';

/** One for each of `wantedMounts`. */
export interface ToolFacts {
  readonly id: string;
  /** The user's home on the host. */
  readonly home: string;
  readonly found: PathFacts;
  /** A link in the tree that leads out of it. */
  readonly escapes?: string;
  /** In mode `protected`, of a folder that is bound. */
  readonly look?: ToolLook;
}

export interface ToolSource extends Source {
  readonly mountId: string;
  /** Not the folder itself but a copy of it, which the daemon owns. */
  readonly isShadow: boolean;
}

/** A folder in the state folder that lives as long as the sandbox: a copy of a folder of the host, or empty at first. */
export interface PlannedShadow {
  readonly mountId: string;
  /** Absent: it is empty at first. */
  readonly source?: string;
  readonly target: string;
  readonly writable: boolean;
  /** In the syntax of `.gitignore`. */
  readonly excludes?: readonly string[];
  /** It is of use without content: one that is large, or that cannot be read, is left empty. */
  readonly mayBeEmpty?: true;
}

/** A folder of a tool that is writable inside and in which something is held. */
export interface ToolFolder {
  readonly mountId: string;
  readonly source: string;
  readonly target: string;
  /** The user's home on the host. */
  readonly home: string;
}

const field = 'builtin_tools';

export interface WantedTools {
  readonly sources: readonly ToolSource[];
  readonly shadows: readonly PlannedShadow[];
  /** Over the binds of the sources. */
  readonly mounts: readonly BoxMount[];
  readonly stubs: readonly Stub[];
  /** Places of the host that shadows are mounted on. */
  readonly covered: readonly { readonly source: string; readonly target: string }[];
  readonly folders: readonly ToolFolder[];
  /** In mode `shared`, and some of it is writable. */
  readonly shared: readonly BuiltinToolName[];
  readonly sockets: readonly PlannedSocket[];
  readonly notes: readonly UserNote[];
}

export function toolSources(
  { builtin_tools: tools = [], profile }: Pick<Spec, 'builtin_tools' | 'profile'>,
  facts: readonly ToolFacts[],
  places: HostPlaces,
): WantedTools {
  if (tools.length > 0 && profile === 'strict') {
    throw refuse(
      field,
      `${field}: the strict profile has neither a home nor a folder that a tool may write to`,
      'Leave the tools out, or use the standard profile.',
    );
  }
  const brought = wantedMounts(tools).map((mount) => {
    const fact = facts.find(({ id }) => id === mount.id);
    if (fact === undefined) throw new RangeError(`there are no facts of ${mount.id}`);
    return bring(mount, fact, places);
  });
  const sockets = tools.flatMap((tool) => builtinTools[toolName(tool)].sockets);
  const shared = sharedTools(tools);
  return {
    sources: brought.flatMap(({ source }) => source ?? []),
    shadows: brought.flatMap(({ shadows = [] }) => shadows),
    mounts: brought.flatMap(({ held }) => held?.mounts ?? []),
    stubs: brought.flatMap(({ held }) => held?.stubs ?? []),
    covered: brought.flatMap(({ held }) => held?.own ?? []).map(({ source, target }) => ({ source, target })),
    folders: brought.flatMap(({ folder }) => folder ?? []),
    shared,
    sockets: [...new Map(sockets.map((socket) => [socket.id, socket])).values()],
    notes: [...brought.flatMap(({ note }) => note ?? []), ...credentialNotes(tools), ...sharedNotes(shared)],
  };
}

interface Brought {
  /** Undefined: it is not there, and need not be. */
  readonly source?: ToolSource;
  readonly shadows?: readonly PlannedShadow[];
  readonly held?: HeldPaths;
  readonly folder?: ToolFolder;
  readonly note?: UserNote;
}

function bring(mount: WantedMount, fact: ToolFacts, places: HostPlaces): Brought {
  const found = toolSource(mount, fact, places);
  if (found === undefined) return { note: skipped(mount, fact) };
  const isProtected = isHeldIn(mount);
  if (isProtected && isCopiedWhole(mount.id)) {
    const excludes = leftOutOfCopy[mount.id] ?? [];
    return {
      source: { ...found, isShadow: true },
      shadows: [{ ...shadowOf(found), mayBeEmpty: true, ...(excludes.length === 0 ? {} : { excludes }) }],
      note: copied(mount, found),
    };
  }
  const folder = { source: found.real, target: found.target.path };
  const held = isProtected && fact.escapes === undefined ? heldIn(folder, mount, fact) : undefined;
  const because = escapesWords(fact) ?? (held !== undefined && 'because' in held ? held.because : undefined);
  if (because !== undefined) {
    // What is the sandbox's own begins empty, in a copy as well.
    const excludes = isProtected ? ownNames(mount.id).map(({ name }) => `/${name}`) : [];
    return {
      source: { ...found, isShadow: true },
      shadows: [{ ...shadowOf(found), ...(excludes.length === 0 ? {} : { excludes }) }],
      note: shadowed(mount, found, because),
    };
  }
  if (held === undefined || 'because' in held) return { source: found };
  return {
    source: found,
    held,
    folder: { ...folder, mountId: mount.id, home: fact.home },
    shadows: held.own.map((place) => ownShadow(mount.id, place, fact.look)),
  };
}

/** The folder is bound and writable, and the host executes from it. */
export const isHeldIn = ({ mode, writable, id }: WantedMount): boolean =>
  mode === 'protected' && writable && isExecutedFrom(id);

function heldIn(
  folder: HeldFolder,
  { id }: WantedMount,
  { look }: ToolFacts,
): ReturnType<typeof protectTool> {
  // SECURITY: without it everything in the folder would be writable.
  if (look === undefined) throw new RangeError(`nobody looked into the folder of ${id}`);
  return protectTool(folder, id, look);
}

const shadowOf = ({ mountId, real, target, how }: ToolSource): PlannedShadow => ({
  mountId,
  source: real,
  target: target.path,
  writable: how === 'writable',
});

function ownShadow(
  mount: string,
  { path, source, target }: HeldPaths['own'][number],
  look: ToolLook | undefined,
): PlannedShadow {
  const isCopied = ownNames(mount).some(({ name, inside }) => name === path && inside === 'copy');
  return {
    mountId: `${mount}.${path.replaceAll('/', '-')}`,
    target,
    writable: true,
    ...(isCopied && look?.found[path] === 'directory' ? { source, mayBeEmpty: true } : {}),
  };
}

function toolSource(
  mount: WantedMount,
  { found, home }: ToolFacts,
  places: HostPlaces,
): ToolSource | undefined {
  const place = `${home}/${mount.source}`;
  const { real, realKind, uid, gid } = found;
  if (realKind === 'missing' && !mount.required && found.kind === 'missing') return undefined;
  if (realKind !== 'directory') {
    const what = realKind === 'missing' ? 'is not there' : 'is no folder';
    throw refuse(
      field,
      `${field}: ${mount.tool} needs ${place}, which ${what}`,
      `Use ${mount.tool} once on this machine, make the folder, or leave the tool out.`,
    );
  }
  // What the table names is allowed by it; what a link in its place leads to is judged as anything else.
  if (real !== place) {
    if (!isWithin(real, home)) {
      throw refuse(
        field,
        `${field}: ${place} of ${mount.tool} leads to ${real}, out of your home`,
        'Make it a folder of your home, or leave the tool out.',
      );
    }
    requireAllowedSource(field, { given: place, real, writable: mount.writable }, places);
  }
  const target = mount.target.startsWith('/') ? mount.target : `${userHome}/${mount.target}`;
  return {
    field,
    given: place,
    real,
    kind: 'directory',
    uid,
    gid,
    how: mount.writable ? 'writable' : 'readonly',
    target: { field: `${field} (${mount.tool})`, path: target },
    mountId: mount.id,
    isShadow: false,
  };
}

const escapesWords = ({ escapes }: ToolFacts): string | undefined =>
  escapes === undefined ? undefined : `${escapes} in it is a link that leads out of it`;

function skipped({ tool, source }: WantedMount, { home }: ToolFacts): UserNote {
  return {
    code: 'tool_skipped',
    message: `${tool} is without ${home}/${source}, which is not there`,
  };
}

function shadowed({ tool, writable }: WantedMount, { real }: Source, because: string): UserNote {
  const changes = writable ? '; changes inside do not reach it' : '';
  return {
    code: 'tool_shadow_copy',
    message: `${tool} gets a copy of ${real} without links that lead out of it, because ${because}${changes}`,
  };
}

const copied = ({ tool }: WantedMount, { real }: Source): UserNote => ({
  code: 'tool_own_copy',
  message: `${tool} gets a copy of ${real}, because this machine executes programs from there; changes inside do not reach it (\`--tool ${tool}:shared\` shares it)`,
});

function credentialNotes(tools: readonly WantedTool[]): readonly UserNote[] {
  return [...new Set(tools.map(toolName))]
    .filter((tool) => builtinTools[tool].bringsCredentials)
    .map((tool) => ({
      code: 'tool_credentials',
      message: `${tool}: your real credentials become visible inside; a secret (\`sally secret set\`, then \`--secret\`) stays outside`,
    }));
}

function sharedTools(tools: readonly WantedTool[]): readonly BuiltinToolName[] {
  const names = tools.filter((tool) => toolMode(tool) === 'shared').map(toolName);
  return [...new Set(names)].filter((name) => builtinTools[name].mounts.some(({ writable }) => writable));
}

function sharedNotes(tools: readonly BuiltinToolName[]): readonly UserNote[] {
  return tools.map((tool) => {
    const folders = builtinTools[tool].mounts.filter(({ writable }) => writable);
    const list = folders.map(({ source }) => `~/${source}`).join(', ');
    return {
      code: 'tool_shared',
      message: `WARNING: ${tool} is in mode shared: code inside can change what this machine executes from ${list}`,
    };
  });
}
