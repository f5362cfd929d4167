/**
 * One spec of many sources, and for each value where it came from (O7): flags over environment over project file over the
 * user's file over defaults.
 *
 * Absent leaves what a weaker source says. An empty list or map means none, and takes away what weaker sources gave. Maps
 * are joined by key, mounts and copies by target; everything else is replaced as a whole. A project file cannot go beyond a limit
 * of the user's file: that is refused, because a value that is silently lowered is found out much later.
 */

import { formatDuration } from '../lib/durations.ts';
import { formatSize } from '../lib/sizes.ts';
import { defaultIdleTtlMs, profiles } from '../policy/profiles.ts';
import { defaultImage, imageSetting } from '../protocol/default-image.ts';
import { examine, specInvalid } from '../protocol/parse-spec.ts';
import type { Problem } from '../protocol/problems.ts';
import { type Spec, type SpecInput, specSchema } from '../protocol/spec.ts';
import { limitsSchema } from '../protocol/spec-values.ts';
import type { SourceKind, SpecSource } from './spec-source.ts';
import { requireWithinUserLimits } from './user-limits.ts';

export interface EffectiveValue {
  /** As in the spec; entries of maps by their key, mounts and copies by their target. */
  readonly field: string;
  readonly value: unknown;
  readonly source: SourceKind;
  /** The file, the variable or the flag. */
  readonly where?: string;
}

export interface EffectiveSpec {
  /** To be sent as it is. */
  readonly input: SpecInput;
  /** The same as it is understood. */
  readonly spec: Spec;
  readonly values: readonly EffectiveValue[];
}

const strength: Readonly<Record<SourceKind, number>> = {
  flag: 4,
  environment: 3,
  project: 2,
  user: 1,
  default: 0,
};
const joinedByKey = ['workspace', 'images', 'limits', 'envs', 'labels', 'egress'];
/** Of `egress`: lists that add up. */
const addedUp = ['allow', 'deny', 'presets', 'credentials'];
const joinedByTarget = ['mounts', 'copies'];

interface Entry {
  readonly value: unknown;
  readonly source: SpecSource;
}
/** By field of the spec, then by key; the key of a field that is not joined is empty. */
type Merged = Map<string, Map<string, Entry>>;

export function effectiveSpec(sources: readonly SpecSource[]): EffectiveSpec {
  const ordered = [...sources].sort((a, b) => strength[a.kind] - strength[b.kind]);
  const merged: Merged = new Map();
  for (const source of ordered) addSource(merged, source);
  leaveLimitsToStrict(merged);
  const input = inputOf(merged);
  const { data: spec, problems } = examine(specSchema, input);
  if (spec === undefined)
    throw specInvalid(
      'the sandbox that was asked for',
      problems.map((each) => attributed(each, merged)),
    );
  const values = valuesOf(merged);
  requireWithinUserLimits(
    spec,
    values,
    ordered.find(({ kind }) => kind === 'user'),
  );
  return { input, spec, values: [...values, ...imageValue(spec, values), ...defaultValues(spec)] };
}

function addSource(merged: Merged, source: SpecSource): void {
  for (const [field, value] of Object.entries(source.fragment)) {
    if (value === undefined) continue;
    const parts = partsOf(field, value);
    const isJoined = joinedByKey.includes(field) || joinedByTarget.includes(field);
    const before = merged.get(field) ?? new Map<string, Entry>();
    const entries = isJoined && parts.length > 0 ? before : leftByEmpty(field, source.kind, before);
    for (const [key, part] of parts) {
      if (part !== undefined)
        entries.set(key, { value: added(field, key, entries.get(key)?.value, part), source });
    }
    merged.set(field, entries);
  }
}

/**
 * SECURITY: an empty map takes away what was allowed. What a weaker source denies stays denied, and a project file, which needs no
 * approval for an empty map, changes neither the limits and images of the user's own file nor the way by which everything leaves.
 */
function leftByEmpty(
  field: string,
  kind: SourceKind,
  before: ReadonlyMap<string, Entry>,
): Map<string, Entry> {
  const kept = [...(keptByAll[field] ?? []), ...(kind === 'project' ? (keptByProject[field] ?? []) : [])];
  return new Map([...before].filter(([key]) => kept.includes(key)));
}

const keptByAll: Readonly<Record<string, readonly string[]>> = { egress: ['deny'] };
const keptByProject: Readonly<Record<string, readonly string[]>> = {
  egress: ['upstream', 'upstream_secret'],
  limits: Object.keys(limitsSchema.shape),
  images: ['default', 'strict'],
};

/** SECURITY: what a weaker source denies stays denied, also when a stronger one has an empty list. */
function added(field: string, key: string, before: unknown, part: unknown): unknown {
  const isList = field === 'egress' && addedUp.includes(key) && Array.isArray(before) && Array.isArray(part);
  if (!isList || (part.length === 0 && key !== 'deny')) return part;
  return [...new Set([...before, ...part])];
}

function partsOf(field: string, value: unknown): readonly (readonly [string, unknown])[] {
  if (joinedByTarget.includes(field) && Array.isArray(value)) {
    return value.map((entry: { readonly target: string }) => [entry.target, entry] as const);
  }
  if (joinedByKey.includes(field) && typeof value === 'object' && value !== null)
    return Object.entries(value);
  return [['', value]];
}

function inputOf(merged: Merged): SpecInput {
  const fields = [...merged].map(([field, entries]) => {
    const values = [...entries].map(([key, { value }]) => [key, value] as const);
    if (joinedByTarget.includes(field)) return [field, values.map(([, value]) => value)];
    return [field, joinedByKey.includes(field) ? Object.fromEntries(values) : entries.get('')?.value];
  });
  return Object.fromEntries(fields) as SpecInput;
}

/**
 * Who asks for the strict profile gets its limits, though a weaker source has larger ones for the usual case; a limit of
 * the same source or a stronger one is kept, and refused by policy if it is too large.
 */
function leaveLimitsToStrict(merged: Merged): void {
  const profile = merged.get('profile')?.get('');
  const limits = merged.get('limits');
  if (profile?.value !== 'strict' || limits === undefined) return;
  for (const [key, { source, value }] of limits) {
    const parsed = examine(specSchema, { limits: { [key]: value } }).data?.limits ?? {};
    const ceiling = strictCeilings[key];
    const number = Object.values(parsed)[0];
    const isWeaker = strength[source.kind] < strength[profile.source.kind];
    if (isWeaker && ceiling !== undefined && number !== undefined && number > ceiling) limits.delete(key);
  }
}

const strictCeilings: Readonly<Record<string, number>> = {
  memory: profiles.strict.memoryBytes,
  cpus: profiles.strict.cpus,
  pids: profiles.strict.pids,
  nofile: profiles.strict.nofile,
  disk: profiles.strict.diskBytes,
};

const nameOf = (field: string, key: string): string => (key === '' ? field : `${field}.${key}`);

function valuesOf(merged: Merged): readonly EffectiveValue[] {
  return [...merged].flatMap(([field, entries]) =>
    [...entries].map(([key, { value, source }]) => {
      const name = nameOf(field, key);
      const where = source.names?.[name] ?? source.names?.[field] ?? source.file;
      return { field: name, value, source: source.kind, ...(where === undefined ? {} : { where }) };
    }),
  );
}

/** A problem in the words of the one who wrote the value: the variable or the flag instead of the field. */
function attributed(problem: Problem, merged: Merged): Problem {
  const [top, next] = problem.path;
  const entries = merged.get(String(top));
  const byKey = [...(entries ?? [])][Number(next)]?.[0];
  const key = joinedByTarget.includes(String(top)) ? (byKey ?? '') : String(next ?? '');
  const entry = entries?.get(key) ?? entries?.get('');
  const name = entry?.source.names?.[nameOf(String(top), key)] ?? entry?.source.names?.[String(top)];
  return name === undefined ? problem : { ...problem, field: name };
}

export const baseImage = 'the base image';

/** Of a sandbox without an image of its own: that of the setting which counts. */
function imageValue(spec: Spec, values: readonly EffectiveValue[]): readonly EffectiveValue[] {
  if (spec.image !== undefined) return [];
  const isSet = defaultImage(spec) !== undefined;
  const setting = values.find(({ field }) => isSet && field === `images.${imageSetting(spec.profile)}`);
  return [
    setting === undefined
      ? { field: 'image', value: baseImage, source: 'default' }
      : { ...setting, field: 'image' },
  ];
}

function defaultValues(spec: Spec): readonly EffectiveValue[] {
  const profile = profiles[spec.profile ?? 'standard'];
  const defaults: readonly (readonly [string, unknown, unknown])[] = [
    ['images.default', spec.images?.default, baseImage],
    ['images.strict', spec.images?.strict, baseImage],
    ['profile', spec.profile, 'standard'],
    ['limits.memory', spec.limits?.memory, formatSize(profile.memoryBytes)],
    ['limits.cpus', spec.limits?.cpus, profile.cpus],
    ['limits.pids', spec.limits?.pids, profile.pids],
    ['limits.nofile', spec.limits?.nofile, profile.nofile],
    ['limits.disk', spec.limits?.disk, formatSize(profile.diskBytes)],
    ['engine', spec.engine, 'auto'],
    ['runtime', spec.runtime, "the engine's default"],
    ['network', spec.network, 'none'],
    ['idle_ttl', spec.idle_ttl, formatDuration(defaultIdleTtlMs)],
    ['max_lifetime', spec.max_lifetime, 'never'],
  ];
  return defaults
    .filter(([, set]) => set === undefined)
    .map(([field, , value]) => ({ field, value, source: 'default' as const }));
}
