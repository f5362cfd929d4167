/** Text as a model is given it: its beginning and its end, so that neither the cause nor the result is missing. Pure. */

export interface Shown {
  readonly text: string;
  readonly truncated: boolean;
}

/** Cut at characters, never inside one. */
export function shown(text: string, most: number): Shown {
  if (text.length <= most) return { text, truncated: false };
  const half = Math.floor(most / 2);
  const head = wholeCharacters(text.slice(0, half));
  const tail = text.slice(-half).replace(/^[\uDC00-\uDFFF]/, '');
  const left = text.length - head.length - tail.length;
  return { text: `${head}\n[… ${left} characters left out …]\n${tail}`, truncated: true };
}

const wholeCharacters = (text: string): string => text.replace(/[\uD800-\uDBFF]$/, '');
