/**
 * Which tests belong to this run. A test that does not (it needs root, or takes the big sizes) is left out when the files are
 * collected, and listed with the run that has it. It is never skipped: a skip means that something is missing on the machine.
 */

import { appendFileSync, readFileSync } from 'node:fs';
import { describe, expect, it, test } from 'vitest';
import { full, isRoot } from './requires.ts';

export interface Part {
  readonly isSelected: boolean;
  readonly runsIn: string;
}

const suite = process.env['SALLYPORT_TEST_SUITE'];
const onDocker = process.env['SALLYPORT_TEST_ENGINE'] !== 'bubblewrap';

export const asRoot: Part = { isSelected: isRoot, runsIn: 'npm test as root' };
export const asOrdinaryUser: Part = { isSelected: !isRoot, runsIn: 'npm test -- --suite user' };
export const fullSizes: Part = { isSelected: full, runsIn: 'npm run test:full -- here' };
/** Images of agents, the browser and HTTPS clients, programs of the npm registry, a private Tor network: minutes to make. */
export const realClients: Part = {
  isSelected: full || suite === 'clients',
  runsIn: 'npm test -- --suite clients',
};
export const dockerAlone: Part = { isSelected: onDocker, runsIn: 'the same file on Docker' };
/**
 * bubblewrap of an ordinary user has no control groups: limits of memory and processors, the strict profile and a pause are
 * refused there (bubblewrap.test.ts).
 */
export const withLimits: Part = { isSelected: onDocker || isRoot, runsIn: 'npm test as root' };

/**
 * Debian testing and sid build runsc of July 2024 with Go 1.26, whose goroutines that release cannot identify: it panics
 * (`assertTaskGoroutine`) as soon as a program reads a file. Only those releases have no VERSION_ID.
 */
export const onGvisor: Part = {
  isSelected: !isDebianWithoutVersion(),
  runsIn: 'npm test on Debian 12 and npm run test:full -- debian-13',
};

function isDebianWithoutVersion(): boolean {
  const release = readFileSync('/etc/os-release', 'utf8');
  return /^ID=debian$/m.test(release) && !/^VERSION_ID=/m.test(release);
}

interface Definers {
  readonly describe: ReturnType<typeof describe.runIf>;
  readonly it: ReturnType<typeof it.runIf>;
  readonly test: ReturnType<typeof test.runIf>;
}

/**
 * `when(asRoot).it('…', …)` defines the test where every part is selected, and lists it otherwise. A requirement of the
 * machine may stand among the parts; one that is not met skips the test.
 */
export function when(...parts: readonly (Part | boolean)[]): Definers {
  const leftOutOf = parts.find((part) => typeof part === 'object' && !part.isSelected);
  if (typeof leftOutOf === 'object') return listing(leftOutOf);
  const isMet = !parts.includes(false);
  return { describe: describe.runIf(isMet), it: it.runIf(isMet), test: test.runIf(isMet) };
}

function listing(part: Part): Definers {
  const list = (name: string): void => leaveOut(name, part);
  const listed: unknown = Object.assign(list, { each: () => list });
  return {
    describe: listed as Definers['describe'],
    it: listed as Definers['it'],
    test: listed as Definers['test'],
  };
}

/** For a part of a test or a row of its table. */
export function isSelected(part: Part, name: string): boolean {
  if (!part.isSelected) leaveOut(name, part);
  return part.isSelected;
}

function leaveOut(name: string, { runsIn }: Part): void {
  const list = process.env['SALLYPORT_LEFT_OUT'];
  if (list === undefined) return;
  const file = expect.getState().testPath ?? '';
  appendFileSync(list, `${JSON.stringify({ file, name, runsIn })}\n`);
}
