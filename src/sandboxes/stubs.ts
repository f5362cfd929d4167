/**
 * Stubs: what is put into a live workspace where a protected path is missing, because a mount needs something to be mounted on.
 *
 * A stub is in a sandbox's record before it is on disk, so that a crash leaves none for ever. It is removed when the last
 * sandbox that needs it has stopped, and only as long as it is what was put there: an empty folder, or a file with the very
 * content. No link is ever followed on the way to one.
 */

import { constants } from 'node:fs';
import { lstat, mkdir, open, rmdir, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Serial } from '../lib/serial.ts';
import type { Stub } from '../policy/held-paths.ts';
import { SallyportError } from '../protocol/errors.ts';
import { HostWalk } from './host-walk.ts';
import type { SandboxRecord } from './records.ts';

/** What all sandboxes of a daemon share: two of them may need the same stub. */
export interface StubTurns {
  /** Making and removing happen one after the other. */
  readonly turns: Serial;
  readonly neededByOthers: (id: string, path: string) => boolean;
  /** What boxes of any daemon have mounted. SECURITY: with a stub its mount would go, and with that what it protects. */
  readonly boundPaths: (stopped: string | undefined) => Promise<ReadonlySet<string>>;
}

/** Makes what is missing. `remember` is called before, with all that this sandbox needs and did not find as somebody's own. */
export async function makeStubs(
  {
    id,
    plan,
    stubs: kept = [],
  }: Pick<SandboxRecord, 'id' | 'stubs'> & { readonly plan: Pick<SandboxRecord['plan'], 'stubs'> },
  { turns, neededByOthers }: StubTurns,
  remember: (stubs: readonly Stub[]) => void,
): Promise<readonly Stub[]> {
  const { stubs = [] } = plan;
  if (stubs.length === 0) return [];
  return await turns.run(async () => {
    const walk = new HostWalk();
    try {
      const missing: Stub[] = [];
      for (const stub of stubs) if (!(await isThere(walk, stub.path))) missing.push(stub);
      const isStub = ({ path }: Stub): boolean =>
        neededByOthers(id, path) || kept.some((stub) => stub.path === path);
      const shared = stubs.filter((stub) => !missing.includes(stub) && isStub(stub));
      remember([...missing, ...shared]);
    } finally {
      await walk.close();
    }
    return await makeMissing(stubs);
  });
}

/** Parents come first, so each is looked for when its parent is there. */
async function makeMissing(stubs: readonly Stub[]): Promise<readonly Stub[]> {
  const made: Stub[] = [];
  const walk = new HostWalk();
  try {
    for (const stub of stubs) {
      if (await isThere(walk, stub.path)) continue;
      await make(walk, stub);
      made.push(stub);
    }
    return made;
  } finally {
    await walk.close();
  }
}

/**
 * Idempotent. What is in use by others, or was changed, stays; `keep` gets what another daemon still needs, for the next time.
 * `stopped` is the box of this sandbox, if it was seen to be stopped.
 */
export async function removeStubs(
  { id, stubs = [] }: Pick<SandboxRecord, 'id' | 'stubs'>,
  { turns, neededByOthers, boundPaths }: StubTurns,
  stopped: string | undefined,
  keep: (stubs: readonly Stub[]) => void,
): Promise<void> {
  if (stubs.length === 0) return;
  await turns.run(async () => {
    const unneeded = stubs.filter(({ path }) => !neededByOthers(id, path));
    const bound = unneeded.length === 0 ? new Set() : await boundPaths(stopped);
    const walk = new HostWalk();
    try {
      for (const stub of unneeded.toReversed()) if (!bound.has(stub.path)) await removeUnchanged(walk, stub);
      keep(unneeded.filter(({ path }) => bound.has(path)));
    } finally {
      await walk.close();
    }
  });
}

async function isThere(walk: HostWalk, path: string): Promise<boolean> {
  try {
    await lstat(await walk.entry(path));
    return true;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw impossible(path, error);
  }
}

async function make(walk: HostWalk, { path, content }: Stub): Promise<void> {
  try {
    const entry = await walk.entry(path);
    if (content === undefined) await mkdir(entry);
    const flags =
      content === undefined
        ? constants.O_RDONLY | constants.O_DIRECTORY
        : constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL;
    const handle = await open(entry, flags | constants.O_NOFOLLOW);
    try {
      if (content !== undefined) await handle.writeFile(content);
      await handle.chmod(content === undefined ? 0o755 : 0o644);
      // Root makes it for the owner of the folder, who could not remove what root left in it.
      const parent = await (await walk.folder(dirname(path))).stat();
      if (process.getuid?.() === 0) await handle.chown(parent.uid, parent.gid);
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw impossible(path, error);
  }
}

async function removeUnchanged(walk: HostWalk, { path, content }: Stub): Promise<void> {
  try {
    const entry = await walk.entry(path);
    // Of a folder that is not empty the kernel refuses it.
    if (content === undefined) await rmdir(entry);
    else if (await holds(entry, content)) await unlink(entry);
  } catch {
    // It is not there, was filled, or somebody put something else in its place: then it is no stub any more.
  }
}

async function holds(entry: string, content: string): Promise<boolean> {
  const handle = await open(entry, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const facts = await handle.stat();
    return facts.isFile() && facts.size === content.length && (await handle.readFile('utf8')) === content;
  } finally {
    await handle.close();
  }
}

const codeOf = (error: unknown): unknown => (error as NodeJS.ErrnoException).code;

function impossible(path: string, cause: unknown): SallyportError {
  const why = String(codeOf(cause) ?? cause);
  return new SallyportError(
    'stub_impossible',
    `${path} is to be protected, and a stub cannot be put there (${why})`,
    {
      details: { path, errno: why },
      cause,
    },
  );
}
