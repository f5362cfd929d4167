/** Where a path leads, as far as that shows in its text. */

import type { Arg } from './words.ts';

/**
 * `here`: below the working directory. `all-here`: the working directory itself, or everything in it. `scratch`: a
 * temporary folder. `device`: a device that holds data. `sink`: one that does not, such as /dev/null.
 */
export type Scope =
  | 'here'
  | 'all-here'
  | 'scratch'
  | 'sink'
  | 'device'
  | 'home'
  | 'system'
  | 'root'
  | 'not-known';

export interface Whereabouts {
  /** Absolute. With it, an absolute path below it is `here`. */
  readonly cwd?: string | undefined;
  /** The command changes to another folder first, so what is relative may be anywhere. */
  readonly elsewhere: boolean;
  /** Folders that it changes to, as far as they are known. */
  readonly bases?: readonly string[];
}

/** Devices that take or give anything and keep nothing. */
export const sinks = /^\/dev\/(null|zero|full|random|urandom|stdin|stdout|stderr|tty|fd(\/.*)?|ptmx)$/;
const scratch = /^(\/private)?(\/var)?\/tmp\/.+/;

export function scopeOf(arg: Arg, where: Whereabouts): Scope {
  if (!arg.known) return 'not-known';
  const windows = windowsPath(arg);
  if (windows !== undefined) return /^[a-z]:\\?\*?$/i.test(windows) ? 'root' : 'system';
  const text = arg.text;
  if (text === '~' || text.startsWith('~/')) return isAll(text.slice(1)) ? 'root' : 'home';
  if (text.startsWith('~')) return 'home';
  if (!text.startsWith('/')) return relativeScope(text, where);
  const path = normalise(text);
  if (path === where.cwd) return 'all-here';
  if (where.cwd !== undefined && path.startsWith(`${where.cwd}/`)) {
    return relativeScope(path.slice(where.cwd.length + 1), { ...where, elsewhere: false });
  }
  if (path === '/' || /^\/\*+$/.test(path)) return 'root';
  if (sinks.test(path)) return 'sink';
  if (path.startsWith('/dev/')) return 'device';
  if (scratch.test(path) && !isAll(path.replace(/^.*\/tmp/, ''))) return 'scratch';
  return /^\/(home|root|Users)(\/|$)/.test(path) ? 'home' : 'system';
}

function relativeScope(text: string, { elsewhere }: Whereabouts): Scope {
  const path = normalise(text);
  if (elsewhere || path === '..' || path.startsWith('../')) return 'system';
  return path === '.' || isAll(`/${path}`) ? 'all-here' : 'here';
}

/** Everything in a folder: `/`, `/*`, `/.*`, `/{*,.*}`. */
const isAll = (rest: string): boolean => /^\/?[*.{},?]*$/.test(rest);

/** Without empty and dot segments; `..` is taken back where it can be. */
export function normalise(path: string): string {
  const absolute = path.startsWith('/');
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue;
    if (part !== '..') parts.push(part);
    else if (parts.length > 0 && parts.at(-1) !== '..') parts.pop();
    else if (!absolute) parts.push('..');
  }
  return absolute ? `/${parts.join('/')}` : parts.join('/') || '.';
}

/** `C:\…` as it was written, with one kind of separator. */
export function windowsPath({ raw }: Arg): string | undefined {
  const bare = raw.replace(/^["']|["']$/g, '');
  return /^[A-Za-z]:([\\/]|$)/.test(bare) ? bare.replaceAll('/', '\\').replace(/\\+/g, '\\') : undefined;
}
