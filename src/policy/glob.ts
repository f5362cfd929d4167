/**
 * Patterns of names as a list of tokens, and whether a path fits them. Pure.
 *
 * Patterns come from files of a project, so they may be hostile: all tokens are followed at once, and the time grows with the
 * length of the path times the length of the pattern, never faster. A path is a list of numbers: bytes, or code points.
 */

export type Token =
  /** Exactly this. */
  | { readonly kind: 'char'; readonly code: number }
  /** One of anything but a slash. */
  | { readonly kind: 'one' }
  /** One for which it says yes; never a slash. */
  | { readonly kind: 'set'; readonly has: (code: number) => boolean }
  /** Any number of anything but slashes. */
  | { readonly kind: 'star' }
  /** Any number of anything. */
  | { readonly kind: 'deep' }
  /** Nothing, or anything that ends with a slash. */
  | { readonly kind: 'folders' };

export type Glob = readonly Token[];
export type Codes = ArrayLike<number>;

export const slash = 0x2f;

export function globMatches(glob: Glob, path: Codes): boolean {
  return walk(glob, path)[glob.length] === true;
}

/** Whether a path that begins with this one may fit. */
export function globMayMatchBelow(glob: Glob, beginning: Codes): boolean {
  return walk(glob, beginning).slice(0, glob.length).includes(true);
}

/** The tokens that may come next, by their place; the place after the last one means that all have been used. */
function walk(glob: Glob, path: Codes): readonly boolean[] {
  let at = new Array<boolean>(glob.length + 1).fill(false);
  enter(glob, at, 0);
  for (let place = 0; place < path.length; place++) {
    const next = new Array<boolean>(glob.length + 1).fill(false);
    const code = path[place] ?? 0;
    for (const [index, token] of glob.entries()) if (at[index] === true) step(glob, next, index, token, code);
    at = next;
  }
  return at;
}

function step(glob: Glob, next: boolean[], index: number, token: Token, code: number): void {
  switch (token.kind) {
    case 'char':
      if (token.code === code) enter(glob, next, index + 1);
      return;
    case 'one':
      if (code !== slash) enter(glob, next, index + 1);
      return;
    case 'set':
      if (code !== slash && token.has(code)) enter(glob, next, index + 1);
      return;
    case 'star':
      if (code !== slash) enter(glob, next, index);
      return;
    case 'deep':
      enter(glob, next, index);
      return;
    case 'folders':
      // Only behind a slash may it end; it may go on in any case.
      if (code === slash) enter(glob, next, index);
      else next[index] = true;
  }
}

/** What may be nothing is passed as well. */
function enter(glob: Glob, at: boolean[], from: number): void {
  for (let index = from; ; index++) {
    at[index] = true;
    const kind = glob[index]?.kind;
    if (kind !== 'star' && kind !== 'deep' && kind !== 'folders') return;
  }
}
