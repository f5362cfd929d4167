/** What of a remote's address may be known inside: where it is, and nothing that opens it. Pure. */

const schemes = new Set(['https:', 'http:', 'ssh:', 'git:']);

/** Undefined: a path of this machine, a helper program, or nothing that is understood. */
export function publicAddress(url: string): string | undefined {
  if (/\p{C}|\s/u.test(url)) return undefined;
  // SECURITY: `user:password@host:path` has no scheme either; only a plain user is let through.
  const short = /^(?:[\w.-]+@)?([A-Za-z0-9][\w.-]*):(?!\/\/|:)([^@]+)$/.exec(url);
  if (short !== null && !/^[A-Za-z][A-Za-z0-9+.-]*::/.test(url))
    return `${userOf(url)}${short[1]}:${short[2]}`;
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    return undefined;
  }
  if (!schemes.has(parsed.protocol) || parsed.host === '') return undefined;
  // A token is often given as the user's name over HTTP; over SSH the name says which account it is.
  const user = parsed.protocol === 'ssh:' && parsed.username !== '' ? `${parsed.username}@` : '';
  return `${parsed.protocol}//${user}${parsed.host}${parsed.pathname}`;
}

const userOf = (url: string): string => /^([\w.-]+@)/.exec(url)?.[1] ?? '';

const plainName = /^[A-Za-z0-9][\w.-]{0,99}$/;

/** Of `git config -z --get-regexp '^remote\..*\.url$'`: name to address, without those that may not be known. */
export function publicRemotes(listed: readonly string[]): ReadonlyMap<string, string> {
  const remotes = new Map<string, string>();
  for (const entry of listed) {
    const [key = '', url = ''] = entry.split(/\n(.*)/s);
    const name = key.slice('remote.'.length, -'.url'.length);
    const address = publicAddress(url);
    if (plainName.test(name) && address !== undefined && !remotes.has(name)) remotes.set(name, address);
  }
  return remotes;
}
