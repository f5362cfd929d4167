/**
 * A workspace as a copy: puts the folder in, remembers what was put in, and tells what is different inside by now. The
 * folder of the host is only read.
 */

import { createHash, type Hash } from 'node:crypto';
import type { HostEntry } from '../lib/host-tree.ts';
import type { BoxPlan } from '../policy/box-plan.ts';
import type { PlannedCopy } from '../policy/copy-sources.ts';
import type { Files } from '../porter/files.ts';
import type { TreeSource } from '../porter/tree-stream.ts';
import { SallyportError } from '../protocol/errors.ts';
import { CopyTree } from './copy-tree.ts';
import type { Manifest, SandboxRecord } from './records.ts';
import type { Tell } from './world.ts';

export interface WorkspaceChanges {
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
}

const progressEvery = 1000;
/** What a copy keeps of a mode: a set-user-id bit means nothing inside. */
const modeBits = 0o777;

export async function copyWorkspace(
  files: Files,
  folder: PlannedCopy,
  options: { readonly tell: Tell; readonly skipped: (path: string) => void; readonly signal: AbortSignal },
): Promise<Manifest> {
  const manifest: Record<string, string> = {};
  let count = 0;
  async function* entries(): AsyncGenerator<TreeSource> {
    for await (const entry of new CopyTree(folder.source, folder.excludes).entries()) {
      const source = sourceOf(entry, (mark) => {
        manifest[keyOf(entry.path)] = mark;
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
  return manifest;
}

function sourceOf(entry: HostEntry, remember: (mark: string) => void): TreeSource | undefined {
  const { path } = entry;
  const mode = entry.mode & modeBits;
  const mtimeNs = entry.mtimeNs > 0n ? entry.mtimeNs : 0n;
  switch (entry.kind) {
    case 'file': {
      const { sizeBytes } = entry;
      const hash = createHash('sha256');
      const chunks = hashed(entry.chunks(), hash, () => remember(`f ${mode} ${hash.digest('hex')}`));
      return { kind: 'file', path, mode, mtimeNs, body: { sizeBytes, chunks } };
    }
    case 'directory':
      remember('d');
      return { kind: 'directory', path, mode: mode | 0o700, mtimeNs };
    case 'link':
      remember(`l ${entry.target.toString('base64')}`);
      return { kind: 'link', path, target: entry.target, mtimeNs };
    case 'other':
      return undefined;
  }
}

async function* hashed(chunks: AsyncIterable<Buffer>, hash: Hash, done: () => void): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    hash.update(chunk);
    yield chunk;
  }
  done();
}

const keyOf = (path: Buffer): string => path.toString('base64');
const shown = (key: string): string => Buffer.from(key, 'base64').toString('utf8');

/** Compares what is inside now with what was put in. */
export async function workspaceChanges(
  files: Files,
  target: string,
  manifest: Manifest,
  signal?: AbortSignal,
): Promise<WorkspaceChanges> {
  const missing = new Set(Object.keys(manifest));
  const added: string[] = [];
  const changed: string[] = [];
  for await (const entry of files.getTree(target, signal === undefined ? {} : { signal })) {
    const key = keyOf(entry.path);
    const mode = entry.mode & modeBits;
    const hash = createHash('sha256');
    for await (const chunk of entry.body) hash.update(chunk);
    const mark =
      entry.kind === 'file'
        ? `f ${mode} ${hash.digest('hex')}`
        : entry.kind === 'link'
          ? `l ${entry.target.toString('base64')}`
          : entry.kind === 'directory'
            ? 'd'
            : '?';
    if (!missing.delete(key)) added.push(shown(key));
    else if (manifest[key] !== mark) changed.push(shown(key));
  }
  return { added, changed, removed: [...missing].map(shown) };
}

export const workspaceCopy = ({ copies }: Pick<BoxPlan, 'copies'>): PlannedCopy | undefined =>
  copies.find(({ isWorkspace }) => isWorkspace);

const shownPaths = 10;
const reportedPaths = 200;

export function requireNoChanges(
  { name, plan }: Pick<SandboxRecord, 'name' | 'plan'>,
  { added, changed, removed }: WorkspaceChanges,
): void {
  const paths = [...added, ...changed, ...removed];
  if (paths.length === 0) return;
  const more = paths.length > shownPaths ? ', …' : '';
  const list = paths.slice(0, shownPaths).join(', ');
  throw new SallyportError(
    'sandbox_changed',
    `sandbox ${name} has ${paths.length} changes that exist nowhere else: ${list}${more}`,
    {
      details: { sandbox: name, count: paths.length, paths: paths.slice(0, reportedPaths) },
      advice: `Copy them out (\`sally cp ${name}:${workspaceCopy(plan)?.target ?? '/workspace'} DIR\`), or remove it with \`--force\`.`,
    },
  );
}
