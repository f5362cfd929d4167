/**
 * A container that cannot start, because something that it mounts is gone from the host, and that must not be replaced by a new one: it
 * holds work that exists nowhere else, or runs for clean-up. Either a placeholder takes the place of what is gone, or the start is refused.
 * Changes nothing itself.
 */

import type { BoxPlan } from '../policy/box-plan.ts';
import { mayHavePlaceholder } from '../policy/tool-protection.ts';
import type { BoxMount } from '../protocol/box.ts';
import { SallyportError } from '../protocol/errors.ts';
import { copiedFolder } from './copied-workspace.ts';
import type { SandboxRecord } from './records.ts';
import type { RenewedPlan } from './renewed-plan.ts';

type Kept = Pick<SandboxRecord, 'name' | 'plan'>;

/**
 * R5: whether the container may be removed and made again unasked. What changed in a copied workspace is known only while the container
 * runs, so any copied workspace counts as changed. `cleanUp`: of the run that begins.
 */
export const isReplaceable = (record: Kept, cleanUp: SandboxRecord['cleanUp']): boolean =>
  cleanUp === undefined && copiedFolder(record) === undefined;

/** The plan with which the present container starts. Throws `mount_stale` where nothing may be put in the place of what is gone. */
export function keptPlan(record: Kept, renewed: Pick<RenewedPlan, 'gone'>): BoxPlan {
  const lacking = withoutPlaceholder(record, renewed);
  if (lacking !== undefined) throw lacking;
  const { plan } = record;
  return { ...plan, stubs: [...(plan.stubs ?? []), ...renewed.gone.map(({ source }) => ({ path: source }))] };
}

/** Why the container cannot start again; undefined: placeholders can take the place of all that is gone. */
export function withoutPlaceholder(
  record: Kept,
  { gone }: Pick<RenewedPlan, 'gone'>,
): SallyportError | undefined {
  const mount = gone.find(({ source }) => !isReplacedByFolder(record.plan, source));
  return mount === undefined ? undefined : cannotStart(record, mount);
}

const isReplacedByFolder = ({ toolFolders = [] }: BoxPlan, path: string): boolean =>
  toolFolders.some(
    ({ mountId, source }) =>
      path.startsWith(`${source}/`) && mayHavePlaceholder(mountId, path.slice(source.length + 1)),
  );

function cannotStart(record: Kept, { source, target }: BoxMount): SallyportError {
  const { name } = record;
  const holdsWork = copiedFolder(record) !== undefined;
  const why = holdsWork
    ? `a new one would lose what was not applied from ${copiedFolder(record)?.target}`
    : 'a run for clean-up removes nothing';
  const next = holdsWork
    ? `Put it back, for example with \`touch ${source}\`, and bring the work back with \`sally apply ${name}\`; or remove the sandbox with its work: \`sally rm --force ${name}\`.`
    : `Put it back, or make the container again, without what was written inside: \`sally start ${name}\` (with \`--disk\` while it is over its limit).`;
  return new SallyportError(
    'mount_stale',
    `${source}, which sandbox ${name} has at ${target}, was removed on the host: the container cannot start without it, and ${why}`,
    { details: { sandbox: name, path: source, target }, advice: next },
  );
}
