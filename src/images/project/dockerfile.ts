/**
 * Reads what must be known of a Dockerfile before it is built: its instructions with their lines, the images that it is built on,
 * and whether it reads files of its context. Pure.
 *
 * It is no second builder. What it does not understand is left to the engine's, but for what only BuildKit can do: that is
 * refused here with the line, because the classic builder's own words about it help nobody.
 */

import { closest } from '../../lib/closest.ts';
import { SallyportError } from '../../protocol/errors.ts';
import { expandVariables } from './dockerfile-variables.ts';

export interface Instruction {
  /** Where it begins, counted from 1. */
  readonly line: number;
  readonly name: string;
  /** Everything after the name, continued lines joined. */
  readonly text: string;
}

export interface Dockerfile {
  readonly file: string;
  /** In the order in which the builder counts its steps. */
  readonly instructions: readonly Instruction[];
  /** Each image that a FROM or a COPY --from names, once, without `scratch` and without stages of this file. */
  readonly bases: readonly string[];
  /** False: no instruction can read a file of the context. */
  readonly readsContext: boolean;
}

const known: ReadonlySet<string> = new Set([
  'ADD',
  'ARG',
  'CMD',
  'COPY',
  'ENTRYPOINT',
  'ENV',
  'EXPOSE',
  'FROM',
  'HEALTHCHECK',
  'LABEL',
  'MAINTAINER',
  'ONBUILD',
  'RUN',
  'SHELL',
  'STOPSIGNAL',
  'USER',
  'VOLUME',
  'WORKDIR',
]);

/** `file` is how it is called in messages. `buildArgs` win over the defaults of an ARG. */
export function readDockerfile(
  file: string,
  text: string,
  buildArgs: Readonly<Record<string, string>> = {},
): Dockerfile {
  const { lines, joiner } = directives(file, text);
  const instructions = instructionsOf(file, lines, joiner);
  return {
    file,
    instructions,
    bases: basesOf(file, instructions, buildArgs),
    readsContext: instructions.some(readsContext),
  };
}

export function syntaxError(file: string, line: number, what: string, advice?: string): SallyportError {
  return new SallyportError('dockerfile_invalid', `${file}, line ${line}: ${what}`, {
    details: { file, line },
    ...(advice === undefined ? {} : { advice }),
  });
}

interface Numbered {
  readonly line: number;
  readonly text: string;
}

/** Directives are comments of a fixed form before anything else; the first line that is none ends them. */
function directives(
  file: string,
  text: string,
): { readonly lines: readonly Numbered[]; readonly joiner: string } {
  const lines = text
    .replace(/^\uFEFF/, '')
    .split('\n')
    .map((line, index) => ({ line: index + 1, text: line.replace(/\r$/, '') }));
  let joiner = '\\';
  for (const { line, text: found } of lines) {
    const [, name = '', value = ''] = /^#\s*([A-Za-z][A-Za-z0-9]*)\s*=\s*(.+?)\s*$/.exec(found) ?? [];
    if (name === '') break;
    if (name.toLowerCase() === 'syntax') throw needsBuildKit(file, line, '`# syntax=`');
    if (name.toLowerCase() !== 'escape') continue;
    if (value !== '\\' && value !== '`')
      throw syntaxError(file, line, `the escape character is ${value}; it may be \\ or \``);
    joiner = value;
  }
  return { lines, joiner };
}

function instructionsOf(file: string, lines: readonly Numbered[], joiner: string): readonly Instruction[] {
  const found: Instruction[] = [];
  const continues = new RegExp(`${joiner === '\\' ? '\\\\' : '`'}[ \\t]*$`);
  let begun: { readonly line: number; text: string } | undefined;
  for (const { line, text } of lines) {
    // A comment or an empty line between continued lines is as if it were not there.
    if (/^\s*(#|$)/.test(text)) continue;
    const isContinued = continues.test(text);
    const part = isContinued ? text.replace(continues, '') : text;
    begun = begun === undefined ? { line, text: part } : { ...begun, text: begun.text + part };
    if (isContinued) continue;
    found.push(instructionOf(file, begun));
    begun = undefined;
  }
  if (begun !== undefined) found.push(instructionOf(file, begun));
  const first = found.find(({ name }) => name !== 'ARG');
  if (first === undefined)
    throw syntaxError(file, Math.max(1, lines.length), 'there is no FROM', 'Begin it with `FROM <image>`.');
  if (first.name !== 'FROM')
    throw syntaxError(file, first.line, `${first.name} comes before the first FROM`, 'Only ARG may.');
  return found;
}

function instructionOf(file: string, { line, text }: Numbered): Instruction {
  const [, word = '', rest = ''] = /^\s*(\S+)\s*([\s\S]*)$/.exec(text) ?? [];
  const name = word.toUpperCase();
  if (!known.has(name)) {
    const meant = closest(name, [...known]);
    const hint = meant === undefined ? '' : `; did you mean ${meant}?`;
    throw syntaxError(file, line, `${JSON.stringify(word.slice(0, 40))} is no instruction${hint}`);
  }
  if (rest.trim() === '') throw syntaxError(file, line, `${name} has no arguments`);
  const instruction = { line, name, text: rest.trim() };
  // At once: what follows a here-document is no instruction, and would be complained about instead.
  requireClassic(file, instruction);
  return instruction;
}

const allowedFlags: Readonly<Record<string, readonly string[]>> = {
  ADD: ['chown'],
  COPY: ['chown', 'from'],
  RUN: [],
  FROM: ['platform'],
};

function requireClassic(file: string, { line, name, text }: Instruction): void {
  const allowed = allowedFlags[name];
  if (allowed === undefined) return;
  for (const { flag } of flagsOf(text)) {
    if (!allowed.includes(flag)) throw needsBuildKit(file, line, `${name} --${flag}`);
  }
  if (name !== 'FROM' && hasHereDocument(text))
    throw needsBuildKit(file, line, `${name} with a here-document`);
}

/** In quotes it is text; quotes around its own word are part of it. `<<<` is the shell's affair. */
function hasHereDocument(text: string): boolean {
  const unquoted = text.replace(/(<<-?)?("[^"]*"|'[^']*')/g, (_, before?: string) =>
    before === undefined ? '' : `${before}word`,
  );
  return unquoted.split(/\s+/).some((word) => /^\d*<<-?[^<]+$/.test(word));
}

function needsBuildKit(file: string, line: number, what: string): SallyportError {
  return syntaxError(
    file,
    line,
    `${what} needs BuildKit, and images are built by the engine's classic builder`,
    'Write it without, for instance with a file that is copied in, or build the image yourself and name it with `--image`.',
  );
}

interface Flag {
  readonly flag: string;
  readonly value: string;
}

/** Those at the beginning; the first word that is none ends them. */
function flagsOf(text: string): readonly Flag[] {
  const flags: Flag[] = [];
  for (const word of text.split(/\s+/)) {
    const [, flag, value = ''] = /^--([a-z][a-z-]*)(?:=(.*))?$/.exec(word) ?? [];
    if (flag === undefined) break;
    flags.push({ flag, value });
  }
  return flags;
}

const flag = (text: string, name: string): string | undefined =>
  flagsOf(text).find((each) => each.flag === name)?.value;

const withoutFlags = (text: string): readonly string[] => text.split(/\s+/).slice(flagsOf(text).length);

function readsContext({ name, text }: Instruction): boolean {
  if (name === 'ADD') return true;
  return name === 'COPY' && flag(text, 'from') === undefined;
}

/** As the builder finds them: a name of an earlier stage is that stage, whatever image has the same name. */
function basesOf(
  file: string,
  instructions: readonly Instruction[],
  buildArgs: Readonly<Record<string, string>>,
): readonly string[] {
  const bases = new Set<string>();
  const globals = new Map<string, string>();
  const stages: string[] = [];
  for (const instruction of instructions) {
    const { line, name, text } = instruction;
    if (name === 'ARG' && stages.length === 0) readArg(text, buildArgs, globals);
    else if (name === 'FROM') {
      const { image, stage } = readFrom(file, instruction, globals);
      if (!stages.includes(image.toLowerCase()) && image !== 'scratch') bases.add(image);
      stages.push(stage);
    } else if (name === 'COPY') {
      const from = flag(text, 'from');
      if (from === undefined) continue;
      if (from === '' || from.includes('$'))
        throw syntaxError(file, line, 'COPY --from names no image: it takes no variables');
      const isStage = stages.slice(0, -1).includes(from.toLowerCase()) || /^\d+$/.test(from);
      if (!isStage) bases.add(from);
    }
  }
  return [...bases];
}

function readArg(
  text: string,
  buildArgs: Readonly<Record<string, string>>,
  globals: Map<string, string>,
): void {
  for (const word of text.match(/(?:[^\s"']|"[^"]*"|'[^']*')+/g) ?? []) {
    const at = word.indexOf('=');
    const name = at < 0 ? word : word.slice(0, at);
    const written = at < 0 ? undefined : expandVariables(word.slice(at + 1).replace(/["']/g, ''), globals);
    const value = Object.hasOwn(buildArgs, name) ? buildArgs[name] : written;
    if (value !== undefined) globals.set(name, value);
  }
}

function readFrom(
  file: string,
  { line, text }: Instruction,
  globals: ReadonlyMap<string, string>,
): { readonly image: string; readonly stage: string } {
  const [written = '', as, stage = ''] = withoutFlags(text);
  if (written === '' || (as !== undefined && as.toLowerCase() !== 'as'))
    throw syntaxError(file, line, `FROM ${text} is no \`FROM <image> [AS <name>]\``);
  const image = expandVariables(written.replace(/["']/g, ''), globals);
  if (image === undefined || !/^[\w][\w.:/@-]*$/.test(image))
    throw syntaxError(
      file,
      line,
      `FROM ${written} names no image`,
      'Give each ARG that it uses a default value before the first FROM, or a value of its own (`--build-arg`).',
    );
  return { image, stage: stage.toLowerCase() };
}
