/**
 * What the built-in tools of a spec bring (A4, A6): binds where that is safe, daemon-owned copies where a link in the tree leads
 * out of it, and notes of what was left out or becomes visible. Pure.
 */

import type { Spec } from '../protocol/spec.ts';
import type { PathFacts, Source } from './box-plan.ts';
import { type UserNote, userHome } from './box-user.ts';
import { builtinTools, type PlannedSocket, type WantedMount, wantedMounts } from './builtin-tools.ts';
import { refuse } from './copy-sources.ts';
import { type HostPlaces, requireAllowedSource } from './forbidden-sources.ts';
import { isWithin } from './paths.ts';

/** One for each of `wantedMounts`. */
export interface ToolFacts {
  readonly id: string;
  /** The user's home on the host. */
  readonly home: string;
  readonly found: PathFacts;
  /** A link in the tree that leads out of it. */
  readonly escapes?: string;
}

export interface ToolSource extends Source {
  readonly mountId: string;
  /** Not the folder itself but a copy of it, which the daemon owns. */
  readonly isShadow: boolean;
}

/** A copy of a tool's folder that lives in the state folder as long as the sandbox. */
export interface PlannedShadow {
  readonly mountId: string;
  readonly source: string;
  readonly target: string;
  readonly writable: boolean;
}

const field = 'builtin_tools';

export interface WantedTools {
  readonly sources: readonly ToolSource[];
  readonly sockets: readonly PlannedSocket[];
  readonly notes: readonly UserNote[];
}

export function toolSources(
  { builtin_tools: tools = [], profile }: Pick<Spec, 'builtin_tools' | 'profile'>,
  facts: readonly ToolFacts[],
  places: HostPlaces,
): WantedTools {
  if (tools.length === 0) return { sources: [], sockets: [], notes: [] };
  if (profile === 'strict') {
    throw refuse(
      field,
      `${field}: the strict profile has neither a home nor a folder that a tool may write to`,
      'Leave the tools out, or use the standard profile.',
    );
  }
  const sources: ToolSource[] = [];
  const notes: UserNote[] = [];
  for (const mount of wantedMounts(tools)) {
    const fact = facts.find(({ id }) => id === mount.id);
    if (fact === undefined) throw new RangeError(`there are no facts of ${mount.id}`);
    const source = toolSource(mount, fact, places);
    if (source === undefined) notes.push(skipped(mount, fact));
    else sources.push(source);
    if (source?.isShadow === true) notes.push(shadowed(mount, fact, source));
  }
  const sockets = tools.flatMap((tool) => builtinTools[tool].sockets);
  return {
    sources,
    sockets: [...new Map(sockets.map((socket) => [socket.id, socket])).values()],
    notes: [...notes, ...credentialNotes(tools)],
  };
}

/** Undefined: it is not there, and need not be. */
function toolSource(
  mount: WantedMount,
  { found, home, escapes }: ToolFacts,
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
    isShadow: escapes !== undefined,
  };
}

function skipped({ tool, source }: WantedMount, { home }: ToolFacts): UserNote {
  return {
    code: 'tool_skipped',
    message: `${tool} is without ${home}/${source}, which is not there`,
  };
}

function shadowed({ tool, writable }: WantedMount, { escapes }: ToolFacts, { real }: Source): UserNote {
  const changes = writable ? '; changes inside do not reach it' : '';
  return {
    code: 'tool_shadow_copy',
    message: `${tool} gets a copy of ${real} without links that lead out of it (${escapes})${changes}`,
  };
}

function credentialNotes(tools: NonNullable<Spec['builtin_tools']>): readonly UserNote[] {
  return [...new Set(tools)]
    .filter((tool) => builtinTools[tool].bringsCredentials)
    .map((tool) => ({
      code: 'tool_credentials',
      message: `${tool}: your real credentials become visible inside; a secret (\`sally secret set\`, then \`--secret\`) stays outside`,
    }));
}

export function plannedShadows(sources: readonly ToolSource[]): readonly PlannedShadow[] {
  return sources
    .filter(({ isShadow }) => isShadow)
    .map(({ mountId, real, target, how }) => ({
      mountId,
      source: real,
      target: target.path,
      writable: how === 'writable',
    }));
}
