/** Messages about a sandbox that was stopped for its disk usage, with the commands that make it usable again. Pure. */

import { formatSize } from '../lib/sizes.ts';
import { SallyportError } from '../protocol/errors.ts';
import type { DiskOver, SandboxRecord } from './records.ts';

const mebibyte = 2 ** 20;
const gibibyte = 2 ** 30;

/** A size in the syntax of `--disk`, rounded up. */
const diskFlag = (bytes: number): string =>
  bytes >= gibibyte ? `${Math.ceil(bytes / gibibyte)}g` : `${Math.ceil(bytes / mebibyte)}m`;

export function diskReason({
  rule,
  of,
  limit,
  used,
  free = 0,
  estimated = false,
  service,
}: DiskOver): string {
  const amount = (value: number): string => (of === 'bytes' ? formatSize(value) : `${value} files`);
  const who = service === undefined ? 'it' : `its service ${service}`;
  if (rule === 'limit') {
    const what = estimated
      ? `${who} has too many files to measure in time and may use ${amount(used)}`
      : `${who} wrote ${amount(used)}`;
    return `${what}, and the disk limit is ${amount(limit)}`;
  }
  const why = estimated ? `it wrote ${amount(used)}, more than its files explain` : 'it grew most';
  return `the engine's disk has ${amount(free)} free, less than the reserve of ${amount(limit)}, and ${why}`;
}

/** `limitBytes`: the present disk limit of the sandbox. `ownLimits`: services whose limit is in the spec. */
export function diskError({
  name,
  overDisk,
  limitBytes,
  ownLimits,
}: Pick<SandboxRecord, 'name' | 'overDisk'> & {
  readonly limitBytes: number;
  readonly ownLimits: readonly string[];
}): SallyportError {
  if (overDisk === undefined) throw new RangeError(`sandbox ${name} was not stopped for its disk usage`);
  const { rule, of, used, limit, service } = overDisk;
  return new SallyportError(
    'disk_limit_exceeded',
    `sandbox ${name} was stopped: ${diskReason(overDisk)}; nothing was removed`,
    {
      details: { sandbox: name, rule, of, used, limit, ...(service === undefined ? {} : { service }) },
      advice: adviceOn(name, overDisk, { limitBytes, ownLimits }),
    },
  );
}

function adviceOn(
  name: string,
  { rule, used, service }: DiskOver,
  { limitBytes, ownLimits }: { readonly limitBytes: number; readonly ownLimits: readonly string[] },
): string {
  const cleanUp = `\`sally start --clean-up ${name}\` and \`sally shell ${name}\``;
  if (rule === 'reserve')
    return `Free space on the disk, or in the sandbox with ${cleanUp}; \`sally start --disk ${diskFlag(limitBytes)} ${name}\` starts it anyway.`;
  if (service !== undefined && ownLimits.includes(service))
    return `Raise limits.disk of the service ${service} in the spec and run \`sally create --reuse\` with it, then \`sally start ${name}\`.`;
  const raise = `\`sally start --disk ${diskFlag(Math.max(2 * limitBytes, 1.5 * used))} ${name}\``;
  // A clean-up run has no services, and nothing else reaches their files.
  if (service !== undefined) return `Raise the limit: ${raise}.`;
  return `Free space with ${cleanUp}, or raise the limit: ${raise}.`;
}

/** For calls that a clean-up run does not accept. */
export function cleanUpError({ name }: Pick<SandboxRecord, 'name'>): SallyportError {
  return new SallyportError(
    'disk_limit_exceeded',
    `sandbox ${name} runs for clean-up: only files and shells are available`,
    {
      details: { sandbox: name },
      advice: `Free space with \`sally shell ${name}\` or \`sally files rm\`, then run \`sally start ${name}\`.`,
    },
  );
}
