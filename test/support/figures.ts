/** What a run with the big sizes measured, on its terminal: a test that passes says otherwise nothing about how near it came. */

import { full } from './requires.ts';

export function tellFigures(what: string, figures: Readonly<Record<string, number>>): void {
  if (!full) return;
  const shown = Object.entries(figures).map(([name, value]) => `${name} ${Math.round(value)}`);
  process.stderr.write(`figures: ${what}: ${shown.join(', ')}\n`);
}
