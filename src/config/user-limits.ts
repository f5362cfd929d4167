/** What a project file may not lift: limits, lifetimes, profile, engine and runtime that the user's own file sets. */

import { SallyportError } from '../protocol/errors.ts';
import { parseSpec } from '../protocol/parse-spec.ts';
import type { Spec } from '../protocol/spec.ts';
import type { EffectiveValue } from './effective-spec.ts';
import type { SpecSource } from './spec-source.ts';

interface Guarded {
  readonly field: string;
  /** The way to say it on the command line, where the user is asked himself. */
  readonly flag: string;
  readonly of: (spec: Spec) => number | string | undefined;
  readonly lifts: (project: number | string, user: number | string) => boolean;
}

const amount = (value: number | string): number =>
  typeof value === 'number' ? value : Number.POSITIVE_INFINITY;
const isMore = (project: number | string, user: number | string): boolean => amount(project) > amount(user);

const guarded: readonly Guarded[] = [
  { field: 'limits.memory', flag: '--memory', of: ({ limits }) => limits?.memory, lifts: isMore },
  { field: 'limits.cpus', flag: '--cpus', of: ({ limits }) => limits?.cpus, lifts: isMore },
  { field: 'limits.pids', flag: '--pids-limit', of: ({ limits }) => limits?.pids, lifts: isMore },
  { field: 'limits.nofile', flag: 'SALLYPORT_NOFILE', of: ({ limits }) => limits?.nofile, lifts: isMore },
  { field: 'limits.disk', flag: '--disk', of: ({ limits }) => limits?.disk, lifts: isMore },
  { field: 'idle_ttl', flag: '--idle-ttl', of: ({ idle_ttl }) => idle_ttl, lifts: isMore },
  {
    field: 'max_lifetime',
    flag: 'SALLYPORT_MAX_LIFETIME',
    of: ({ max_lifetime }) => max_lifetime,
    lifts: isMore,
  },
  {
    field: 'profile',
    flag: '--profile',
    of: ({ profile }) => profile,
    lifts: (_, user) => user === 'strict',
  },
  { field: 'engine', flag: '--engine', of: ({ engine }) => engine, lifts: () => true },
  { field: 'runtime', flag: '--runtime', of: ({ runtime }) => runtime, lifts: () => true },
];

export function requireWithinUserLimits(
  spec: Spec,
  values: readonly EffectiveValue[],
  user: SpecSource | undefined,
): void {
  if (user === undefined) return;
  const own = parseSpec(user.fragment);
  for (const { field, flag, of, lifts } of guarded) {
    const written = values.find((value) => value.field === field);
    const wanted = of(spec);
    const allowed = of(own);
    if (written?.source !== 'project' || wanted === undefined || allowed === undefined) continue;
    if (wanted === allowed || !lifts(wanted, allowed)) continue;
    throw lifted(field, flag, written, user);
  }
  requireServicesWithin(spec, values, user);
}

/** A service without a disk limit has the sandbox's, so the user's limit is the limit of both. */
function requireServicesWithin(spec: Spec, values: readonly EffectiveValue[], user: SpecSource): void {
  const allowed = parseSpec(user.fragment).limits?.disk;
  for (const list of ['required_services', 'optional_services'] as const) {
    const written = values.find((value) => value.field === list);
    if (written?.source !== 'project' || allowed === undefined) continue;
    const larger = spec[list]?.find(({ limits }) => isMore(limits?.disk ?? 0, allowed));
    if (larger === undefined) continue;
    const value = larger.limits?.disk;
    throw lifted(
      `${list}.limits.disk`,
      undefined,
      { ...written, value: `${value} for ${larger.name}` },
      user,
    );
  }
}

function lifted(
  field: string,
  flag: string | undefined,
  written: EffectiveValue,
  user: SpecSource,
): SallyportError {
  const file = written.where ?? 'the project file';
  return new SallyportError(
    'refused_by_policy',
    `${field} (${String(written.value)}) of ${file} goes beyond what your own ${user.file ?? 'file'} sets, and a project never does`,
    {
      details: { field, file, ...(user.file === undefined ? {} : { userFile: user.file }) },
      advice:
        flag === undefined
          ? 'Change your own file, or lower it in the project.'
          : `Say it yourself (${flag}), change your own file, or lower it in the project.`,
    },
  );
}
