/** The calls that can set a set-user-id or set-group-id bit, by `test/security/probe.c`, and what a sandbox makes of them. */

import { execFileSync } from 'node:child_process';
import { chownSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { temporaryFolder } from './little-engine.ts';
import { isRoot } from './requires.ts';

/** As root a workspace must be somebody else's. */
export const owner = isRoot ? 1234 : (process.getuid?.() ?? -1);

export const setIdModes = ['4755', '2755', '6711'];
const plainModes = ['755', '1777'];

const EPERM = 1;
const ENOSYS = 38;
const EOPNOTSUPP = 95;
type Findings = Readonly<Record<string, number>>;

const isAmd64 = process.arch === 'x64';
/** By the calls that take a mode; those of the first line are on every machine. */
const refused: Findings = Object.fromEntries(
  [
    'fchmodat',
    'fchmodat2',
    'fchmod',
    'openat',
    'openat-unnamed',
    'mknodat',
    'mknodat-pipe',
    'fchmodat-folder',
  ]
    .concat(isAmd64 ? ['chmod', 'open', 'creat', 'mknod'] : [])
    .map((name) => [name, EPERM]),
);
/** Calls of other tables, and the one whose mode no filter can see, are not there at all, whatever the mode. */
const absent: Findings = {
  openat2: ENOSYS,
  ...(isAmd64 ? { 'x32-chmod': ENOSYS, 'i386-chmod': ENOSYS } : {}),
};
/** The kernel itself takes no such bit from these. */
export const harmlessModes: Findings = { 'openat-there': 0, mkdirat: 0, ...(isAmd64 ? { mkdir: 0 } : {}) };
export const doneModes: Findings = Object.fromEntries(Object.keys(refused).map((name) => [name, 0]));

/** Of the owner, with the program in it. */
export function probeWorkspace(): string {
  const folder = temporaryFolder();
  const source = fileURLToPath(new URL('../security/probe.c', import.meta.url));
  execFileSync('gcc', ['-static', '-Os', '-o', join(folder, 'probe'), source]);
  if (isRoot) chownSync(folder, owner, owner);
  return folder;
}

export function findings(output: string): Findings {
  const rows = output.trim().split('\n');
  return Object.fromEntries(
    rows.map((line) => line.split(' ')).map(([name = '', errno = '']) => [name, Number(errno)]),
  );
}

/** The names of what has a set-id bit, as the host sees them. */
export const withSetId = (folder: string): readonly string[] =>
  readdirSync(folder).filter((name) => (statSync(join(folder, name)).mode & 0o6000) !== 0);

export const modeOf = (path: string): number => statSync(path).mode & 0o7777;

/** A kernel, gVisor or the engine's own profile may lack these; nobody can make a set-id bit with them then. */
const mayBeAbsent: Readonly<Record<string, readonly number[]>> = {
  fchmodat2: [EPERM, ENOSYS],
  'openat-unnamed': [EOPNOTSUPP],
};
export const absentHere = (found: Findings): Findings =>
  Object.fromEntries(
    Object.entries(found).filter(([name, errno]) => mayBeAbsent[name]?.includes(errno) === true),
  );

export async function expectNoSetId(folder: string, probe: (mode: string) => Promise<string>): Promise<void> {
  for (const mode of plainModes) {
    const found = findings(await probe(mode));
    expect(found, mode).toEqual({ ...absent, ...harmlessModes, ...doneModes, ...absentHere(found) });
    expect(modeOf(join(folder, `fchmodat-${mode}`)), mode).toBe(Number.parseInt(mode, 8));
    expect(modeOf(join(folder, `fchmodat-folder-${mode}`)), mode).toBe(Number.parseInt(mode, 8));
  }
  for (const mode of setIdModes) {
    const found = findings(await probe(mode));
    expect(found, mode).toEqual({ ...absent, ...harmlessModes, ...refused });
  }
  expect(withSetId(folder)).toEqual([]);
}
