/**
 * A build context as a tar stream, never whole in memory. Owners, times and modes are the same everywhere, so that the builder's
 * cache sees the inputs and nothing else.
 *
 * SECURITY: what is sent is compared with what was approved, file by file. A difference breaks the stream off, and the builder,
 * which begins when it has all of it, never begins.
 */

import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { createTarPacker, type TarHeader } from 'modern-tar';
import { hostEntry } from '../../lib/host-tree.ts';
import { dockerfileName } from '../../protocol/dockerfile-name.ts';
import { type ContextEntry, digestOf, fileDigest, walkContext } from './build-context.ts';
import { contextChanged, contextFailure } from './context-failure.ts';
import type { ProjectSource } from './project-source.ts';

type Packer = ReturnType<typeof createTarPacker>['controller'];

/** Nothing is read before somebody reads it: a failure that comes before a listener would end the process. */
export function contextTar(source: ProjectSource, signal?: AbortSignal): Readable {
  return Readable.from(packed(source, signal), { objectMode: false });
}

async function* packed(source: ProjectSource, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
  const { readable, controller } = createTarPacker();
  fill(controller, source, signal).then(
    () => controller.finalize(),
    (error: unknown) => controller.error(error),
  );
  const reader = readable.getReader();
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
  } finally {
    // Who left early wants no more of it; at its end or after a failure this does nothing.
    await reader.cancel().catch(() => {});
  }
}

async function fill(packer: Packer, source: ProjectSource, signal: AbortSignal | undefined): Promise<void> {
  const { folder, patterns, dockerfile, inputs, dockerfileBytes } = source;
  const expected = new Map(inputs.map(({ name, digest }) => [name, digest]));
  const missing = new Set([...expected.keys()].filter((name) => name.startsWith('file:')));
  if (dockerfile.readsContext) {
    const visit = async (entry: ContextEntry): Promise<void> => {
      missing.delete(`file:${entry.path}`);
      const digest = await packEntry(packer, entry, signal);
      if (digest !== expected.get(`file:${entry.path}`)) throw contextChanged(entry.path);
    };
    await walkContext(folder, patterns, { visit, signal });
  }
  const [gone] = missing;
  if (gone !== undefined) throw contextChanged(gone.slice('file:'.length));
  if (expected.has(`file:${dockerfileName}`)) return;
  await packBytes(packer, dockerfileName, dockerfileBytes);
  // The builder takes away what this file names before it copies anything: both were left out.
  if (!expected.has('file:.dockerignore'))
    await packBytes(packer, '.dockerignore', Buffer.from(`.dockerignore\n${dockerfileName}\n`));
}

const fixed = { mtime: new Date(0), uid: 0, gid: 0 } as const;

/** Returns the digest of what was sent. */
async function packEntry(
  packer: Packer,
  entry: ContextEntry,
  signal: AbortSignal | undefined,
): Promise<string> {
  const { path, kind, executable, target, sizeBytes } = entry;
  if (kind === 'directory') {
    await end(packer, { ...fixed, name: `${path}/`, type: 'directory', size: 0, mode: 0o755 });
    return 'directory';
  }
  if (kind === 'link') {
    await end(packer, { ...fixed, name: path, type: 'symlink', linkname: target, size: 0, mode: 0o777 });
    return await digestOf(entry, new Map(), () => {});
  }
  const mode = executable ? 0o755 : 0o644;
  const writer = packer.add({ ...fixed, name: path, type: 'file', size: sizeBytes, mode }).getWriter();
  const hash = createHash('sha256');
  try {
    const file = await hostEntry(Buffer.from(entry.at), Buffer.from(path));
    if (file.kind !== 'file' || file.sizeBytes !== sizeBytes) throw contextChanged(path);
    for await (const chunk of file.chunks()) {
      signal?.throwIfAborted();
      hash.update(chunk);
      await writer.write(new Uint8Array(chunk));
    }
  } catch (cause) {
    throw contextFailure(path, cause);
  }
  await writer.close();
  return fileDigest(executable, hash.digest('hex'));
}

async function packBytes(packer: Packer, name: string, content: Buffer): Promise<void> {
  const header = { ...fixed, name, type: 'file' as const, size: content.length, mode: 0o644 };
  const writer = packer.add(header).getWriter();
  await writer.write(new Uint8Array(content));
  await writer.close();
}

async function end(packer: Packer, header: TarHeader): Promise<void> {
  await packer.add(header).close();
}
