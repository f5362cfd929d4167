/**
 * `/etc/passwd` and `/etc/group` of an image with the sandbox's user in them. Pure. Everything else stays byte for byte:
 * what is in these files was written by whoever made the image, and need not even be text.
 */

import { groupName, userName } from '../policy/user-names.ts';

export interface UserEntry {
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
  readonly shell: string;
}

export function passwdWithUser(current: Buffer, user: UserEntry): Buffer {
  const name = userName(user.uid);
  const line = `${name}:x:${user.uid}:${user.gid}:Sallyport:${user.home}:${user.shell}`;
  return withEntry(current, user.uid, { name, line });
}

export function groupWithUser(current: Buffer, gid: number): Buffer {
  const name = groupName(gid);
  return withEntry(current, gid, { name, line: `${name}:x:${gid}:` });
}

/** In the place of the first entry of this id, else at the end. Others of this id or of our name would answer for it. */
function withEntry(
  current: Buffer,
  id: number,
  entry: { readonly name: string; readonly line: string },
): Buffer {
  const lines = splitLines(current.toString('latin1'));
  const kept: string[] = [];
  const written = Buffer.from(entry.line, 'utf8').toString('latin1');
  let isIn = false;
  for (const line of lines) {
    if (idOf(line) === id) {
      if (!isIn) kept.push(`${written}\n`);
      isIn = true;
    } else if (line.split(':', 1)[0] !== entry.name) kept.push(line);
  }
  if (!isIn) {
    const last = kept.at(-1);
    if (last !== undefined && !last.endsWith('\n')) kept.push('\n');
    kept.push(`${written}\n`);
  }
  return Buffer.from(kept.join(''), 'latin1');
}

/** Each with its line end. */
function splitLines(text: string): readonly string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function idOf(line: string): number | undefined {
  const field = line.split(':')[2];
  return field !== undefined && /^\d+$/.test(field) ? Number(field) : undefined;
}
