/** Words as a line of a POSIX shell that means the same words. */

export const shellLine = (words: readonly string[]): string => words.map(quote).join(' ');

function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
