/** Where things may be put inside a sandbox (A3): not over each other, and not over what makes the sandbox work. */

import { porterMount } from '../protocol/box.ts';
import { SallyportError } from '../protocol/errors.ts';
import { isWithin, plainPath } from './paths.ts';

export interface Target {
  /** As in the spec: `workspace.target`, `mounts.0.target`. */
  readonly field: string;
  readonly path: string;
}

interface Reserved {
  readonly path: string;
  readonly because: string;
  /** A target below it is fine. */
  readonly allowsBelow?: true;
}

const kernel = 'the kernel shows itself there';
const engine = 'the engine writes it';

const reserved: readonly Reserved[] = [
  { path: porterMount, because: 'the first process of the sandbox is there' },
  { path: '/proc', because: kernel },
  { path: '/sys', because: kernel },
  { path: '/dev', because: kernel },
  { path: '/tmp', because: 'every sandbox has its own, in memory', allowsBelow: true },
  { path: '/etc/passwd', because: "the sandbox's user is written there" },
  { path: '/etc/group', because: "the sandbox's user is written there" },
  { path: '/etc/hosts', because: engine },
  { path: '/etc/hostname', because: engine },
  { path: '/etc/resolv.conf', because: engine },
];

/** `home`: the sandbox user's. A target may be it or be in it, but not hide it. */
export function requireFreeTargets(targets: readonly Target[], home: string): void {
  const places = home === '/tmp' ? reserved : [...reserved, homeParent(home)];
  for (const [index, target] of targets.entries()) {
    refuseReserved(target, places);
    const other = targets
      .slice(0, index)
      .find(({ path }) => isWithin(target.path, path) || isWithin(path, target.path));
    if (other !== undefined) throw conflict(target, other);
  }
}

const homeParent = (home: string): Reserved => ({
  path: home.slice(0, home.lastIndexOf('/')) || '/',
  because: `the home folder ${home} is in it`,
  allowsBelow: true,
});

function refuseReserved(target: Target, places: readonly Reserved[]): void {
  const met = places.find(
    (place) =>
      isWithin(place.path, target.path) || (place.allowsBelow !== true && isWithin(target.path, place.path)),
  );
  if (met === undefined) return;
  throw new SallyportError(
    'refused_by_policy',
    `${target.field}: nothing may be put at ${target.path}, because of ${met.path}: ${met.because}`,
    {
      details: { field: target.field, path: target.path, reserved: met.path },
      advice: 'Choose a target of its own, such as /workspace or /data.',
    },
  );
}

function conflict(target: Target, other: Target): SallyportError {
  const how = target.path === other.path ? 'is also the target of' : 'is nested with';
  return new SallyportError(
    'refused_by_policy',
    `${target.field}: ${target.path} ${how} ${other.field} (${other.path})`,
    {
      details: { field: target.field, path: target.path, other: other.field },
      advice: 'Give each of them a target that is not inside the other.',
    },
  );
}

export const targetOf = (field: string, path: string): Target => ({ field, path: plainPath(path) });
