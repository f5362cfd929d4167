/** Paths compared as text: whole components, never a common beginning of letters. */

/** `path` is `tree` or lies inside it. Both absolute and without `.`, `..` and doubled slashes. */
export function isWithin(path: string, tree: string): boolean {
  return tree === '/' || path === tree || path.startsWith(`${tree}/`);
}

/** One spelling for each absolute path: no `.`, no doubled or trailing slash. `..` is refused before it comes here. */
export function plainPath(path: string): string {
  return `/${path
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .join('/')}`;
}
