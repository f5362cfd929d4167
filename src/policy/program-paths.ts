/**
 * Sallyport's own program in a live workspace, as a project-local install is: what of it is held read-only, so that a sandbox does
 * not change the program that holds it. Pure.
 */

import { SallyportError } from '../protocol/errors.ts';
import type { Found, Rule } from './held-paths.ts';
import { isWithin } from './paths.ts';

/** What `npx sally` runs in a folder, whoever installed it. */
export const programNames = [
  'node_modules/sallyport',
  'node_modules/.bin/sally',
  'node_modules/.bin/sallyport',
] as const;

const programCommands: readonly string[] = ['sally', 'sallyport'];

/**
 * What a `package.json` has `npx sally`, `pnpm sally` or `yarn sally` run in its folder, before what is installed. Empty for a text
 * that npm cannot read.
 */
export function programsOfManifest(text: string): readonly string[] {
  const { name, bin, directories, scripts } = parsed(text);
  const bins = binsOf(bin, typeof name === 'string' ? name : '');
  const folder = bin === undefined ? fieldsOf(directories)['bin'] : undefined;
  const own = (fields: Readonly<Record<string, unknown>>): readonly string[] =>
    programCommands
      .filter((command) => Object.hasOwn(fields, command))
      .map((key) => `${key}: ${fields[key]}`);
  return [
    ...own(bins),
    ...own(fieldsOf(scripts)),
    ...(folder === undefined ? [] : [`directories.bin: ${folder}`]),
  ];
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    return fieldsOf(JSON.parse(text.replace(/^(?:\uFEFF|\u00EF\u00BB\u00BF)/, '')));
  } catch {
    return {};
  }
}

const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};

/** By command, as npm reads them: a text has the name of the package, and of a path only the last part counts. */
function binsOf(bin: unknown, name: string): Readonly<Record<string, unknown>> {
  const last = (path: string): string =>
    path.replace(/[\\:]/g, '/').replace(/\/+$/, '').replace(/^.*\//s, '');
  const pairs = typeof bin === 'string' ? [[name, bin] as const] : Object.entries(fieldsOf(bin));
  const isList = Array.isArray(bin);
  return Object.fromEntries(pairs.map(([key, value]) => [last(isList ? String(value) : key), value]));
}

export interface ProgramLook {
  /** Relative paths of programs that run, of the packages that they load, and of what `programNames` lead to. */
  readonly paths: readonly string[];
  /** Each `node_modules` in which a package would be loaded before one of them. */
  readonly nearer: readonly string[];
  /** The workspace is a part of this program, or is the program. */
  readonly around?: string;
}

/** A link cannot be held, so the folder that it is in is. `isLeft`: everything is writable by request. */
export function programRules(
  { paths, nearer, around }: ProgramLook,
  found: Found,
  isLeft: boolean,
): readonly Rule[] {
  if (around !== undefined && !isLeft) throw notHoldable(around);
  const holdable = (path: string): readonly string[] => {
    if (found[path] !== 'symlink') return [path];
    const end = path.lastIndexOf('/');
    if (end === -1 && !isLeft) throw notHoldable(path);
    return end === -1 ? [] : [path.slice(0, end)];
  };
  const there = [...programNames, ...paths].filter((path) => found[path] !== undefined).flatMap(holdable);
  const empty = nearer.filter((path) => found[path] === undefined);
  const full = nearer.filter((path) => found[path] !== undefined).flatMap(holdable);
  return [
    ...[...new Set([...there, ...full])].map((path): Rule => ({ path, missing: 'leave' })),
    // SECURITY: what is not there yet could be made, and Node would look into it first.
    ...empty.map((path): Rule => ({ path, missing: 'folder' })),
  ];
}

/** Of a writable mount, of which nothing is held. */
export function requireNoProgram(field: string, source: string, programs: readonly string[]): void {
  const met = programs.find((program) => isWithin(program, source) || isWithin(source, program));
  if (met === undefined) return;
  throw new SallyportError(
    'refused_by_policy',
    `${field}: ${source} may not be writable inside: ${met} runs this sandbox`,
    {
      details: { field, path: source, rule: 'program', place: met },
      advice: 'Mount it read-only, or mount a folder that does not contain the program.',
    },
  );
}

function notHoldable(path: string): SallyportError {
  return new SallyportError(
    'refused_by_policy',
    `workspace.path: the folder contains the program that runs this sandbox (${path}), and it cannot be made read-only inside`,
    {
      details: { field: 'workspace.path', path, rule: 'program' },
      advice:
        'Install Sallyport outside of the folder (`npm install --global sallyport`) and use that one, or work on a copy (`mode: copy`).',
    },
  );
}
