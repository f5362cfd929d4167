/**
 * Which sandbox an agent works in: named by agent, branch and repository (R4), so that the next call finds it again. Pure.
 *
 * SECURITY: two different wishes never share a name. What cannot be said in the letters of a name is told apart by a hash.
 */

import { createHash } from 'node:crypto';
import { sanitizedName } from './names.ts';

export interface AgentPlace {
  readonly agent: string;
  /** Absent: the folder itself, whatever is checked out in it. */
  readonly branch?: string;
  /** The real path of the repository or folder. */
  readonly workspace: string;
}

const prefix = 'sallyport';
const longestName = 63;
const longestAgent = 13;
const longestBranch = 40;
const hashLength = 8;
const endsLikeATag = /(^|-)[0-9a-f]{8}$/;

/** `sallyport-<agent>-<branch, at most 40>-<md5(workspace)[:8]>`, and without a branch nothing in its place. At most 63 characters. */
export function agentBoxName({ agent, branch, workspace }: AgentPlace): string {
  const place = createHash('md5').update(workspace).digest('hex').slice(0, hashLength);
  const who = sanitizedName(agent, longestAgent);
  // A dash in the agent's name would make `a-b` on `c` the same as `a` on `b-c`.
  const isPlainAgent = who === agent && !who.includes('-');
  const start = `${prefix}-${who}`;
  if (branch === undefined) {
    return isPlainAgent ? `${start}-${place}` : `${start}-${tagOf(agent)}-${place}`;
  }
  const room = Math.min(longestBranch, longestName - `${start}--${place}`.length);
  const what = sanitizedName(branch, room);
  const isPlain = isPlainAgent && what === branch && !endsLikeATag.test(what);
  return `${start}-${isPlain ? what : tagged(branch, tagOf(agent, branch), room)}-${place}`;
}

/** A branch as part of a path or of a name: the same only for the same branch. */
export function branchSlug(branch: string): string {
  const what = sanitizedName(branch, longestBranch);
  return what === branch && !endsLikeATag.test(what) ? what : tagged(branch, tagOf(branch), longestBranch);
}

const tagged = (branch: string, tag: string, longest: number): string =>
  `${sanitizedName(branch, longest - hashLength - 1)}-${tag}`;

const tagOf = (...words: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(words)).digest('hex').slice(0, hashLength);
