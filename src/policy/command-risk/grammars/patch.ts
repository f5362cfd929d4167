/** The files that a patch changes, as far as its text is known. Pure. */

import { isProtectedText } from '../protected-writes.ts';

const named =
  /^[ \tX]*(?:\+\+\+|---|\*\*\*|Index:|rename (?:from|to)|copy (?:from|to)|diff --git)[ \t]+([^\n]+)/gm;

/** Names that other programs execute, or that lead out of this folder. */
export function strangeTarget(text: string): string | undefined {
  for (const [, line = ''] of text.matchAll(named)) {
    // SECURITY: in quotes a name has escapes. Behind a name there may be a date, or a second name.
    if (line.includes('\\')) return line;
    for (const name of [line, ...line.split(/\s+/)]) {
      const bare = name.replace(/^"|"$/g, '').trim();
      if (bare !== '/dev/null' && (isProtectedText(bare) || /^[/~]|(^|\/)\.\.(\/|$)/.test(bare))) return bare;
    }
  }
  // Of an edit script the program ed makes what it likes.
  return text.trim() === '' || /^[ \tX]*([-+*]{3} |diff --git)/m.test(text)
    ? undefined
    : 'a name that is not there';
}
