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

/** Repetitions that mean the same once: a long row of them would have to be passed at every step. */
export function compact(tokens: readonly Token[]): Glob {
  return tokens.filter(({ kind }, index) => !mayBeNothing.has(kind) || tokens[index - 1]?.kind !== kind);
}

const mayBeNothing: ReadonlySet<Token['kind'] | undefined> = new Set(['star', 'deep', 'folders'] as const);

/** How far a pattern has come: the tokens that may come next, by their place. The place after the last: all have been used. */
export type GlobState = Uint8Array;

export function globMatches(glob: Glob, path: Codes): boolean {
  return hasMatched(glob, globAfter(glob, path));
}

export const hasMatched = (glob: Glob, state: GlobState): boolean => state[glob.length] === 1;

/** Whether something longer may fit. */
export const mayGoOn = (glob: Glob, state: GlobState): boolean => {
  const next = state.indexOf(1);
  return next !== -1 && next < glob.length;
};

/** After this path, or after the rest of one whose beginning led to `from`, which stays as it is. */
export function globAfter(glob: Glob, path: Codes, from?: GlobState): GlobState {
  let at = new Uint8Array(glob.length + 1);
  let next = new Uint8Array(glob.length + 1);
  if (from === undefined) enter(glob, at, 0);
  else at.set(from);
  for (let place = 0; place < path.length; place++) {
    const code = path[place] ?? 0;
    for (let index = at.indexOf(1); index !== -1; index = at.indexOf(1, index + 1)) {
      step(glob, next, index, code);
    }
    [at, next] = [next, at];
    if (!at.includes(1)) return at;
    next.fill(0);
  }
  return at;
}

function step(glob: Glob, next: Uint8Array, index: number, code: number): void {
  const token = glob[index];
  switch (token?.kind) {
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
      else next[index] = 1;
      return;
    // All have been used, and there is more.
    case undefined:
  }
}

/** What may be nothing is passed as well. */
function enter(glob: Glob, at: Uint8Array, from: number): void {
  for (let index = from; ; index++) {
    at[index] = 1;
    if (!mayBeNothing.has(glob[index]?.kind)) return;
  }
}
