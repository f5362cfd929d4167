/** The files that a patch changes, as far as its text is known. Pure. */

import { isProtectedText } from '../protected-writes.ts';

const named = /^(?:\+\+\+|---|\*\*\*|Index:|rename to|copy to|diff --git \S+) +([^\t\n]+)/gm;

/** Names that other programs execute, or that lead out of this folder. */
export function strangeTarget(text: string): string | undefined {
  for (const [, name = ''] of text.matchAll(named)) {
    // A prefix may be taken away: whatever is left counts.
    const bare = name.replace(/^"|"$/g, '').trim();
    if (bare !== '/dev/null' && (isProtectedText(bare) || /^[/~]|(^|\/)\.\.(\/|$)/.test(bare))) return bare;
  }
  return undefined;
}
