/**
 * What a project says about its own image: its Dockerfile and the files that it may copy, as inputs with digests. Nothing of it
 * is executed, and no registry is asked: this is what a person is shown before anything is built.
 */

import { createHash } from 'node:crypto';
import type { Stats } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { basename } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { hostEntry } from '../../lib/host-tree.ts';
import { OpenFolder } from '../../lib/open-folder.ts';
import { type DockerPattern, dockerPatterns } from '../../policy/dockerignore.ts';
import { sanitizedName } from '../../policy/names.ts';
import { dockerfileName } from '../../protocol/dockerfile-name.ts';
import { SallyportError } from '../../protocol/errors.ts';
import { fingerprint, type ImageInput } from '../inputs.ts';
import type { CachedDigest, ImageRecords } from '../ports.ts';
import { type ContextEntry, digestOf, isSeen, walkContext } from './build-context.ts';
import { contextFailure } from './context-failure.ts';
import { type Dockerfile, readDockerfile, syntaxError } from './dockerfile.ts';

/** The first that is there counts. */
const ignoreNames = [`${dockerfileName}.dockerignore`, '.dockerignore'];
const mostDockerfileBytes = 2 ** 20;
const shownPaths = 5;

export interface ProjectRequest {
  readonly folder: string;
  readonly args?: Readonly<Record<string, string>> | undefined;
  /** Of the build. Absent: the engine's default. */
  readonly network?: 'default' | 'none' | undefined;
}

export interface ProjectSource {
  /** Links followed. */
  readonly folder: string;
  /** Part of the image's name. */
  readonly name: string;
  readonly args: Readonly<Record<string, string>>;
  readonly network: 'default' | 'none';
  readonly dockerfile: Dockerfile;
  readonly dockerfileBytes: Buffer;
  readonly patterns: readonly DockerPattern[];
  /** Dockerfile, files, arguments. */
  readonly inputs: readonly ImageInput[];
  /** What an approval is about: all that the project decides, and whether the build has a network. */
  readonly approval: string;
  readonly files: number;
  readonly bytes: number;
  readonly largest: readonly { readonly path: string; readonly sizeBytes: number }[];
}

/** Undefined: the folder has no Dockerfile of ours. */
export async function readProjectSource(
  request: ProjectRequest,
  records: Pick<ImageRecords, 'loadDigests' | 'saveDigests'>,
  signal?: AbortSignal,
): Promise<ProjectSource | undefined> {
  const folder = await realpath(request.folder).catch((cause) => {
    throw contextFailure('', cause);
  });
  const opened = openFolder(folder);
  if (opened === undefined) return undefined;
  try {
    const bytes = await readNamed(opened, dockerfileName);
    if (bytes === undefined) return undefined;
    const { args = {}, network = 'default' } = request;
    const dockerfile = readDockerfile(dockerfileName, decoded(bytes), args);
    const patterns = await readIgnored(opened);
    const context = dockerfile.readsContext
      ? await readContext({ folder, patterns, signal }, records)
      : { inputs: [], files: 0, bytes: 0, largest: [] };
    const inputs = [
      { name: 'dockerfile', digest: sha256(bytes) },
      ...Object.entries(args).map(([name, value]) => ({ name: `arg:${name}`, digest: sha256(value) })),
      ...context.inputs,
    ];
    return {
      folder,
      name: projectName(folder),
      args,
      network,
      dockerfile,
      dockerfileBytes: bytes,
      patterns,
      inputs,
      approval: fingerprint([...inputs, { name: 'network', digest: network }]),
      files: context.files,
      bytes: context.bytes,
      largest: context.largest,
    };
  } finally {
    opened.close();
  }
}

const sha256 = (content: Buffer | string): string => createHash('sha256').update(content).digest('hex');

/** Our own repositories are not a project's. */
const reserved: ReadonlySet<string> = new Set([
  'base',
  'test',
  'user',
  'browser',
  'data',
  'claude',
  'codex',
  'opencode',
  'coding',
]);

export function projectName(folder: string): string {
  const name = sanitizedName(basename(folder), 50).replace(/[_.-]+/g, '-');
  return reserved.has(name) ? `${name}-project` : name;
}

/** What is no folder has no Dockerfile. */
function openFolder(folder: string): OpenFolder | undefined {
  try {
    return OpenFolder.at(folder);
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOTDIR') return undefined;
    throw contextFailure('', cause);
  }
}

async function readNamed(folder: OpenFolder, name: string): Promise<Buffer | undefined> {
  try {
    const entry = await hostEntry(folder.child(Buffer.from(name)), Buffer.from(name));
    // A sandbox that has this folder live holds the place of a missing file with a folder.
    if (entry.kind === 'directory') return undefined;
    if (entry.kind !== 'file')
      throw syntaxError(name, 1, 'it is no plain file', 'Put the file itself there: links are not followed.');
    if (entry.sizeBytes > mostDockerfileBytes) throw syntaxError(name, 1, 'it is larger than 1 MiB');
    return await buffer(entry.chunks());
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return undefined;
    throw contextFailure(name, cause);
  }
}

function decoded(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new SallyportError('dockerfile_invalid', `${dockerfileName} is no UTF-8 text`, { cause });
  }
}

async function readIgnored(folder: OpenFolder): Promise<readonly DockerPattern[]> {
  for (const name of ignoreNames) {
    const bytes = await readNamed(folder, name);
    if (bytes !== undefined) return dockerPatterns(name, bytes.toString('utf8'));
  }
  return [];
}

type Context = Pick<ProjectSource, 'inputs' | 'files' | 'bytes' | 'largest'>;

interface ContextPlace {
  readonly folder: string;
  readonly patterns: readonly DockerPattern[];
  readonly signal: AbortSignal | undefined;
}

async function readContext(
  { folder, patterns, signal }: ContextPlace,
  records: Pick<ImageRecords, 'loadDigests' | 'saveDigests'>,
): Promise<Context> {
  const cache = records.loadDigests(folder);
  const kept = new Map<string, CachedDigest>();
  const inputs: ImageInput[] = [];
  const sizes: { path: string; sizeBytes: number }[] = [];
  let bytes = 0;
  const visit = (entry: ContextEntry): Promise<void> | undefined => {
    const { path, kind, sizeBytes } = entry;
    const name = `file:${path}`;
    if (kind === 'file') {
      bytes += sizeBytes;
      sizes.push({ path, sizeBytes });
    }
    const digest = digestOf(entry, cache, (seen) => kept.set(path, seen), signal);
    if (typeof digest !== 'string') return digest.then((late) => void inputs.push({ name, digest: late }));
    inputs.push({ name, digest });
    return undefined;
  };
  const isKnown = (path: string, facts: Stats): boolean => {
    const known = cache.get(path);
    return known !== undefined && isSeen(known.seen, facts);
  };
  await walkContext(folder, patterns, { visit, isKnown, signal });
  if (!isSame(cache, kept)) records.saveDigests(folder, kept);
  const largest = sizes.sort((a, b) => b.sizeBytes - a.sizeBytes).slice(0, shownPaths);
  return { inputs, files: sizes.length, bytes, largest };
}

function isSame(a: ReadonlyMap<string, CachedDigest>, b: ReadonlyMap<string, CachedDigest>): boolean {
  if (a.size !== b.size) return false;
  // What was kept is handed on as it is.
  for (const [path, one] of b) if (a.get(path) !== one) return false;
  return true;
}
