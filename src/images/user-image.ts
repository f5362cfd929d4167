/**
 * An image with an entry, a home, a working directory and places for copies for the sandbox's user, made of any image without running anything
 * of it. What was put in cannot be put in later: a box with a read-only root takes no files from outside.
 *
 * SECURITY: the image may be anybody's. Its files are read with a bound and never trusted to be text; what stands where
 * ours belongs and is no plain file is replaced, never followed.
 */

import { posix } from 'node:path';
import { Readable } from 'node:stream';
import { packTar } from 'modern-tar';
import { SallyportError } from '../protocol/errors.ts';
import { label } from '../protocol/labels.ts';
import type { BoxHome, ImageDraft, ImageEngine, ImagePath } from '../sandboxes/ports.ts';
import { hashInputs } from './recipe.ts';
import { groupWithUser, passwdWithUser } from './user-files.ts';

/** Raise it when the same inputs shall give another image. */
const layoutVersion = 3;
const repository = 'sallyport-user';
const maxFileBytes = 2 ** 20;

export interface UserImageKey {
  /** The whole hash of what goes in; the tag is its start. */
  readonly inputs: string;
  readonly tag: string;
  readonly reference: string;
}

export function userImageKey(imageId: string, home: BoxHome): UserImageKey {
  const { uid, gid, home: folder, workdir, folders = [], files = [], resolver } = home;
  // Podman leaves out the algorithm in places.
  const image = imageId.replace(/^sha256:/, '');
  const inputs = hashInputs(
    {
      ...{ layoutVersion, image, uid, gid, home: folder, workdir, places: JSON.stringify([folders, files]) },
      ...(resolver === undefined ? {} : { resolver }),
    },
    [],
  );
  const tag = inputs.slice(0, 16);
  return { inputs, tag, reference: `${repository}:${tag}` };
}

export function requireUser(home: BoxHome): void {
  const refuse = (what: string, advice: string): SallyportError =>
    new SallyportError('refused_by_policy', what, { advice });
  const isId = (id: number): boolean => Number.isInteger(id) && id >= 0 && id < 2 ** 32 - 1;
  if (home.uid === 0) throw refuse('a sandbox never runs as root', 'Choose another user than uid 0.');
  if (!isId(home.uid) || !isId(home.gid)) {
    throw refuse(`${home.uid}:${home.gid} is no user`, 'Use a uid and a gid of the system.');
  }
  for (const [what, path] of [
    ['home', home.home],
    ['working directory', home.workdir],
    ...[...(home.folders ?? []), ...(home.files ?? [])].map((path) => ['target', path] as const),
  ] as const) {
    // A colon or a line end would make another entry of the one that is written.
    if (path.startsWith('/') && posix.normalize(path) === path && !/[:\n\r\0]/.test(path)) continue;
    throw refuse(
      `${JSON.stringify(path)} cannot be the ${what} of a sandbox`,
      'Give an absolute path without colons, `..` and a slash at its end.',
    );
  }
}

/** Makes and tags it. Who calls holds the key, so that it is done once. */
export async function makeUserImage(
  engine: ImageEngine,
  imageId: string,
  home: BoxHome,
  key: UserImageKey,
): Promise<void> {
  const draft = await engine.openDraft({
    image: imageId,
    name: `${repository}-${key.tag}`,
    kind: 'image-user',
    labels: { [label.inputs]: key.inputs, [label.base]: imageId },
  });
  try {
    // Another process may have made it while this one waited for its turn.
    if (await isThere(engine, key)) return;
    await draft.write(Readable.from([await userArchive(draft, home)], { objectMode: false }));
    await draft.commit(repository, key.tag);
  } finally {
    await draft.discard();
  }
}

export async function isThere(
  engine: ImageEngine,
  key: UserImageKey,
  signal?: AbortSignal,
): Promise<boolean> {
  const facts = await engine.find(key.reference, signal);
  return facts?.labels[label.inputs] === key.inputs;
}

type Entry = Parameters<typeof packTar>[0][number];

async function userArchive(draft: ImageDraft, user: BoxHome): Promise<Buffer> {
  const shell = await firstThere(draft, ['/bin/bash', '/bin/sh'], '/sbin/nologin');
  const passwd = passwdWithUser(await readPlain(draft, '/etc/passwd'), { ...user, shell });
  const group = groupWithUser(await readPlain(draft, '/etc/group'), user.gid);
  const folders = await userFolders(draft, user);
  const files = await userFiles(draft, user);
  const own = [rootFile('etc/passwd', passwd), rootFile('etc/group', group), ...resolverFile(user)];
  return Buffer.from(await packTar([...folders, ...files, ...own]));
}

function resolverFile({ resolver }: BoxHome): readonly Entry[] {
  if (resolver === undefined) return [];
  return [rootFile('etc/resolv.conf', Buffer.from(`nameserver ${resolver}\nsearch .\n`))];
}

/** Nothing, where there is no plain file. */
async function readPlain(draft: ImageDraft, path: string): Promise<Buffer> {
  const found = await draft.stat(path);
  if (found?.kind !== 'file') return Buffer.alloc(0);
  if (found.sizeBytes > maxFileBytes) {
    throw new SallyportError('image_build_failed', `${path} of the image has ${found.sizeBytes} bytes`, {
      details: { path },
      advice: 'No such file is that large; look at what the image has there.',
    });
  }
  return await draft.read(path);
}

/** The user's own, and what is missing above them and above our files; what is there already keeps its contents and its mode. */
async function userFolders(draft: ImageDraft, user: BoxHome): Promise<readonly Entry[]> {
  const { home, workdir, folders = [], files = [] } = user;
  const own = new Set([home, workdir, ...folders].filter((path) => path !== '/'));
  const above = [...own, ...files, '/etc/passwd'].flatMap(parents);
  const entries: Entry[] = [];
  // Sorted, so that a folder comes before what is in it.
  for (const path of [...new Set([...above, ...own])].sort()) {
    const found = await draft.stat(path);
    // What is made in the home is the user's, also where it is only on the way to something.
    const isOwn = own.has(path) || (found === undefined && path.startsWith(`${home}/`));
    if (isOwn && found !== undefined && found.kind !== 'directory') throw notAFolder(path);
    if (found === undefined || (isOwn && !isForEverybody(found))) {
      const mode = found === undefined ? 0o755 : found.mode | 0o700;
      entries.push({
        header: {
          name: `${path.slice(1)}/`,
          type: 'directory',
          size: 0,
          mode,
          uid: isOwn ? user.uid : 0,
          gid: isOwn ? user.gid : 0,
          mtime: new Date(0),
        },
      });
    }
  }
  return entries;
}

/** Empty, to be written to: in a folder that is not the user's nobody inside may make a file. */
async function userFiles(draft: ImageDraft, { uid, gid, files = [] }: BoxHome): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  for (const path of files) {
    if ((await draft.stat(path))?.kind === 'directory') throw aFolder(path);
    entries.push({
      header: { name: path.slice(1), type: 'file', size: 0, mode: 0o600, uid, gid, mtime: new Date(0) },
      body: Buffer.alloc(0),
    });
  }
  return entries;
}

/** As /tmp is: the user may write there, and it must not become one user's. */
function isForEverybody(found: ImagePath): boolean {
  return (found.mode & 0o002) !== 0;
}

function parents(path: string): readonly string[] {
  const parent = posix.dirname(path);
  return parent === '/' ? [] : [...parents(parent), parent];
}

async function firstThere(draft: ImageDraft, paths: readonly string[], otherwise: string): Promise<string> {
  for (const path of paths) if ((await draft.stat(path)) !== undefined) return path;
  return otherwise;
}

function rootFile(name: string, body: Buffer): Entry {
  return {
    header: { name, type: 'file', size: body.length, mode: 0o644, uid: 0, gid: 0, mtime: new Date(0) },
    body,
  };
}

function aFolder(path: string): SallyportError {
  return new SallyportError('refused_by_policy', `${path} of the image is a folder`, {
    details: { path },
    advice: 'Name the file that the copy shall be, such as `target: /etc/app.conf`, or another image.',
  });
}

function notAFolder(path: string): SallyportError {
  return new SallyportError('refused_by_policy', `${path} of the image is no folder`, {
    details: { path },
    advice: 'Choose another home or working directory, or another image.',
  });
}
