/** JSON that a terminal may get: the same value, with every character that a terminal may obey as JSON writes it. */

/** `indent` is that of `JSON.stringify`; without one the text is a single line. */
export function harmlessJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(/(?!\n)[\p{C}\u2028\u2029]/gu, (found) =>
    [...Array(found.length).keys()]
      .map((index) => `\\u${found.charCodeAt(index).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}
