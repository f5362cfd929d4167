/**
 * A workspace as a copy: puts the folder in and remembers what was put in, with the content of its files within bounds. The
 * folder of the host is only read.
 */

import { ContentHash } from '../lib/content-hash.ts';
import type { HostEntry } from '../lib/host-tree.ts';
import type { BoxPlan } from '../policy/box-plan.ts';
import type { PlannedCopy } from '../policy/copy-sources.ts';
import type { Files } from '../porter/files.ts';
import type { TreeSource } from '../porter/tree-stream.ts';
import { keyOf, type Mark, placeFor, writeMark, writePatternFile } from './baseline.ts';
import { CopyTree } from './copy-tree.ts';
import type { BaselineWriter } from './ports.ts';
import type { Manifest } from './records.ts';
import type { Tell } from './world.ts';

const progressEvery = 1000;

export async function copyWorkspace(
  files: Files,
  folder: PlannedCopy,
  options: {
    readonly tell: Tell;
    readonly skipped: (path: string) => void;
    readonly signal: AbortSignal;
    /** Takes the content of the files. */
    readonly pack: BaselineWriter;
  },
): Promise<Manifest> {
  const marks: Record<string, string> = {};
  const patternFiles: Manifest['patternFiles'][number][] = [];
  const tree = new CopyTree(folder.source, folder.excludes, (file) =>
    patternFiles.push(writePatternFile(file)),
  );
  let count = 0;
  async function* entries(): AsyncGenerator<TreeSource> {
    for await (const entry of tree.entries()) {
      const source = sourceOf(entry, options.pack, (mark) => {
        marks[keyOf(entry.path)] = writeMark(mark);
      });
      if (source === undefined) {
        options.skipped(entry.path.toString('utf8'));
        continue;
      }
      yield source;
      if (++count % progressEvery === 0) {
        options.tell({
          step: 'workspace',
          message: `copying the workspace: ${count} entries`,
          current: count,
        });
      }
    }
  }
  await files.putTree(folder.target, entries(), { signal: options.signal });
  return { marks, patternFiles };
}

function sourceOf(
  entry: HostEntry,
  pack: BaselineWriter,
  remember: (mark: Mark) => void,
): TreeSource | undefined {
  const { path, mode, mtimeNs } = entry;
  switch (entry.kind) {
    case 'file': {
      const { sizeBytes } = entry;
      const chunks = kept(entry.chunks(), pack, sizeBytes, (found) =>
        remember({ kind: 'file', mode, sizeBytes, ...found }),
      );
      return { kind: 'file', path, mode, mtimeNs, body: { sizeBytes, chunks } };
    }
    case 'directory':
      remember({ kind: 'directory' });
      return { kind: 'directory', path, mode: mode | 0o700, mtimeNs };
    case 'link':
      remember({ kind: 'link', target: entry.target });
      return { kind: 'link', path, target: entry.target, mtimeNs };
    case 'other':
      return undefined;
  }
}

/** The same chunks, hashed and put into the pack as they pass. */
async function* kept(
  chunks: AsyncIterable<Buffer>,
  pack: BaselineWriter,
  sizeBytes: number,
  done: (found: { readonly sha256: string; readonly keptAt?: number }) => void,
): AsyncGenerator<Buffer> {
  const hash = new ContentHash();
  const keptAt = placeFor(pack, sizeBytes);
  for await (const chunk of chunks) {
    hash.update(chunk);
    if (keptAt !== undefined) await pack.write(chunk);
    yield chunk;
  }
  done({ sha256: hash.digest(), ...(keptAt === undefined ? {} : { keptAt }) });
}

export const workspaceCopy = ({ copies }: Pick<BoxPlan, 'copies'>): PlannedCopy | undefined =>
  copies.find(({ isWorkspace }) => isWorkspace);
