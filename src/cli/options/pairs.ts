/** `NAME=value` on the command line and in files, mounts, and tools. Nothing is ever taken from the environment of this process. */

import {
  type BuiltinToolMode,
  type BuiltinToolName,
  builtinToolModes,
} from '../../protocol/builtin-tool-names.ts';
import { SallyportError } from '../../protocol/errors.ts';
import type { SpecInput } from '../../protocol/spec.ts';

type Mount = NonNullable<SpecInput['mounts']>[number];
type Copy = NonNullable<SpecInput['copies']>[number];
type Tool = NonNullable<SpecInput['builtin_tools']>[number];

export function envPairs(pairs: readonly string[], option = '--env'): Record<string, string> {
  const env: Record<string, string> = {};
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    if (at <= 0) {
      throw new SallyportError(
        'usage',
        `${option} ${pair}: write NAME=value; nothing is taken from this shell`,
      );
    }
    env[pair.slice(0, at)] = pair.slice(at + 1);
  }
  return env;
}

/** As Docker reads such files: a line is a pair, `#` begins a comment line, nothing is quoted. */
export function envFilePairs(file: string, text: string): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [index, raw] of text.split('\n').entries()) {
    const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
    if (line.trim() === '' || line.trimStart().startsWith('#')) continue;
    const at = line.indexOf('=');
    if (at <= 0) {
      // The line is not repeated: it may be half of a secret.
      throw new SallyportError(
        'usage',
        `--env-file ${file}, line ${index + 1}: write NAME=value; nothing is taken from this shell`,
      );
    }
    env[line.slice(0, at).trim()] = line.slice(at + 1);
  }
  return env;
}

/** As Docker has it: a label without a value is the label with an empty one. */
export function labelPairs(pairs: readonly string[]): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    const name = at < 0 ? pair : pair.slice(0, at);
    if (name === '') throw new SallyportError('usage', `--label ${pair}: write name=value`);
    labels[name] = at < 0 ? '' : pair.slice(at + 1);
  }
  return labels;
}

/** `SRC:TARGET[:ro|rw]`; read-only unless it says `rw`. The source is made absolute by `absolute`. */
export function mountOf(text: string, absolute: (path: string) => string): Mount {
  const parts = text.split(':');
  const last = parts.at(-1);
  const mode = last === 'ro' || last === 'rw' ? parts.pop() : undefined;
  const [source = '', target = ''] = parts;
  if (parts.length !== 2 || source === '' || !target.startsWith('/')) {
    throw new SallyportError('usage', `--mount ${text}: write SOURCE:TARGET, or SOURCE:TARGET:rw`, {
      advice:
        'The target is an absolute path inside; a folder whose name has a colon is mounted by a sallyport.yaml.',
    });
  }
  return { source: absolute(source), target, writable: mode === 'rw' };
}

/** `SRC:TARGET`. The source is made absolute by `absolute`. */
export function copyOf(text: string, absolute: (path: string) => string): Copy {
  const [source = '', target = '', ...more] = text.split(':');
  if (more.length > 0 || source === '' || !target.startsWith('/')) {
    throw new SallyportError('usage', `--copy ${text}: write SOURCE:TARGET`, {
      advice:
        'The target is an absolute path inside; what has a colon in its name is copied by a sallyport.yaml.',
    });
  }
  return { source: absolute(source), target };
}

/** `NAME` or `NAME:MODE`. Whether there is such a tool is for the schema to say: it knows all of them. */
export function toolOf(text: string): Tool {
  const [name = '', mode, ...more] = text.split(':');
  if (mode === undefined) return name as BuiltinToolName;
  if (more.length > 0 || !isMode(mode))
    throw new SallyportError('usage', `--tool ${text}: write NAME, or NAME:shared`);
  return { name: name as BuiltinToolName, mode };
}

const isMode = (text: string): text is BuiltinToolMode => builtinToolModes.some((mode) => mode === text);
