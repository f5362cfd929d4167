/**
 * What is remembered of each sandbox: `sandboxes/<id>/sandbox.json`, replaced as a whole. A record that cannot be understood
 * is moved aside and reported; it never keeps a daemon from starting.
 */

import { readdirSync, readFileSync, renameSync } from 'node:fs';
import { open, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { removeTree } from '../lib/remove-tree.ts';
import { usualDiskBytes } from '../protocol/box.ts';
import { isSandboxId, type SandboxId } from '../protocol/ids.ts';
import { sandboxStates } from '../protocol/states.ts';
import type { Manifest, SandboxRecord } from '../sandboxes/records.ts';
import { errno, stateFailure } from './state-failure.ts';
import { provideFolder, replaceFile } from './state-folder.ts';

/** The spec was checked when it was taken in, and later versions may be stricter; it stays as it was understood then. */
const recordSchema = z.object({
  id: z.string().refine(isSandboxId),
  name: z.string().min(1),
  state: z.enum(sandboxStates),
  reason: z.string().optional(),
  sequence: z.number().int().nonnegative(),
  createdAt: z.iso.datetime(),
  startedAt: z.iso.datetime().optional(),
  stoppedAt: z.iso.datetime().optional(),
  spec: z.looseObject({}),
  image: z.string(),
  imageId: z.string().optional(),
  imageEnv: z.record(z.string(), z.string()),
  plan: z.looseObject({
    profile: z.enum(['standard', 'strict']),
    usesPool: z.boolean(),
    user: z.looseObject({ uid: z.number().int(), gid: z.number().int(), home: z.string() }),
    workdir: z.string(),
    limits: z.looseObject({
      memoryBytes: z.number(),
      cpus: z.number(),
      pids: z.number(),
      nofile: z.number(),
      shmBytes: z.number(),
    }),
    mounts: z.array(z.looseObject({ source: z.string(), target: z.string(), writable: z.boolean() })),
  }),
  isolation: z.looseObject({ engine: z.string(), engineVersion: z.string(), runtime: z.string() }),
  ephemeral: z.boolean(),
  detached: z.boolean(),
  containerName: z.string(),
  containerId: z.string().optional(),
  isFilled: z.boolean().optional(),
  token: z.string(),
  epoch: z.number().int().nonnegative(),
});

/** A record that was moved aside, and why. */
export interface BrokenRecord {
  readonly path: string;
  readonly why: string;
}

const removedMark = '.removed';

export class Records {
  readonly #folder: string;
  readonly #known = new Set<SandboxId>();
  /** A large one takes long to read, and whoever asks for one file of it asks for more. It is held by nobody here. */
  #lastManifest: { readonly version: string; readonly manifest: WeakRef<Manifest> } | undefined;

  constructor(folder: string) {
    this.#folder = folder;
    provideFolder(folder);
  }

  folderOf(id: SandboxId): string {
    // SECURITY: ids become paths; one that is no id must not leave the folder.
    if (!isSandboxId(id)) throw new RangeError(`${JSON.stringify(id)} is no id of a sandbox`);
    return join(this.#folder, id);
  }

  /** Also finishes removals that a crash cut off. */
  async load(onBroken: (broken: BrokenRecord) => void): Promise<SandboxRecord[]> {
    const records: SandboxRecord[] = [];
    for (const name of this.#names()) {
      if (name.endsWith(removedMark)) await removeTree(join(this.#folder, name));
      if (!isSandboxId(name)) continue;
      const record = this.#loadOne(name, onBroken);
      if (record) records.push(record);
    }
    return records;
  }

  save(record: SandboxRecord): void {
    const folder = this.folderOf(record.id);
    if (!this.#known.has(record.id)) provideFolder(folder);
    this.#known.add(record.id);
    replaceFile(recordFile(folder), `${JSON.stringify(record, undefined, 2)}\n`);
  }

  async saveManifest(id: SandboxId, manifest: Manifest, of: ManifestOf = 'workspace'): Promise<void> {
    const path = manifestFile(this.folderOf(id), of);
    try {
      await writeFile(`${path}.new`, JSON.stringify(manifest), { mode: 0o600 });
      await rename(`${path}.new`, path);
    } catch (cause) {
      throw stateFailure('writing down what was copied in', path, cause);
    }
  }

  async loadManifest(id: SandboxId, of: ManifestOf = 'workspace'): Promise<Manifest | undefined> {
    const path = manifestFile(this.folderOf(id), of);
    try {
      await using file = await open(path, 'r');
      const { ino, mtimeNs, size } = await file.stat({ bigint: true });
      // Each one is a file of its own, so this says which one it is.
      const version = `${path} ${ino} ${mtimeNs} ${size}`;
      const last = this.#lastManifest;
      const known = last?.version === version ? last.manifest.deref() : undefined;
      if (known !== undefined) return known;
      const manifest = manifestSchema.parse(JSON.parse(await file.readFile('utf8')));
      this.#lastManifest = { version, manifest: new WeakRef(manifest) };
      return manifest;
    } catch (cause) {
      if (errno(cause) === 'ENOENT') return undefined;
      throw stateFailure('reading what was copied in', path, cause);
    }
  }

  /** Gone as a whole with the rename; what is behind it may take longer. */
  async remove(id: SandboxId): Promise<void> {
    const folder = this.folderOf(id);
    this.#known.delete(id);
    const doomed = `${folder}${removedMark}`;
    try {
      await removeTree(doomed);
      await rename(folder, doomed);
      await removeTree(doomed);
    } catch (cause) {
      if (errno(cause) !== 'ENOENT') throw stateFailure('removing what is kept of a sandbox', folder, cause);
    }
  }

  #names(): string[] {
    try {
      return readdirSync(this.#folder);
    } catch (cause) {
      throw stateFailure('listing the sandboxes', this.#folder, cause);
    }
  }

  #loadOne(id: SandboxId, onBroken: (broken: BrokenRecord) => void): SandboxRecord | undefined {
    const path = recordFile(join(this.#folder, id));
    try {
      const record = parseRecord(readFileSync(path, 'utf8'), id);
      this.#known.add(id);
      return record;
    } catch (error) {
      if (errno(error) === 'ENOENT') return undefined;
      const why = error instanceof Error ? error.message : String(error);
      moveAside(path);
      onBroken({ path: `${path}.broken`, why });
      return undefined;
    }
  }
}

const manifestSchema = z.object({
  marks: z.record(z.string(), z.string()),
  patternFiles: z.array(z.object({ folder: z.string(), name: z.string(), content: z.string() })),
});
type ManifestOf = 'workspace' | 'tools';
const manifestFile = (folder: string, of: ManifestOf): string => join(folder, `${of}.json`);
const recordFile = (folder: string): string => join(folder, 'sandbox.json');

function parseRecord(text: string, id: SandboxId): SandboxRecord {
  const value: unknown = JSON.parse(text);
  const parsed = recordSchema.safeParse(value);
  if (!parsed.success) throw new Error(z.prettifyError(parsed.error), { cause: parsed.error });
  if (parsed.data.id !== id) throw new Error(`it says that it is ${parsed.data.id}`);
  // As it was written, with what a newer version may have added.
  return withFilled(withCopies(value as SandboxRecord));
}

/** Records of earlier versions do not say it: a sandbox that was ready before has a container that is filled. */
function withFilled(record: SandboxRecord): SandboxRecord {
  const { containerId, startedAt, isFilled = startedAt !== undefined } = record;
  return containerId === undefined ? record : { ...record, isFilled };
}

/** Records of before there were copies have at most one, of the workspace, and none of the later fields. */
function withCopies(record: SandboxRecord): SandboxRecord {
  const plan: Partial<SandboxRecord['plan']> & { readonly copy?: { source: string; target: string } } =
    record.plan;
  const { copy, copies, shadows = [], sockets = [] } = plan;
  const excludes = { patterns: [], from: [] };
  const former =
    copy === undefined ? [] : [{ ...copy, kind: 'directory' as const, excludes, isWorkspace: true }];
  return { ...record, plan: { ...withDiskLimit(record.plan), copies: copies ?? former, shadows, sockets } };
}

/** Records of earlier versions have no disk limit. */
function withDiskLimit(plan: SandboxRecord['plan']): SandboxRecord['plan'] {
  const limits: Partial<SandboxRecord['plan']['limits']> = plan.limits;
  return { ...plan, limits: { ...plan.limits, diskBytes: limits.diskBytes ?? usualDiskBytes } };
}

function moveAside(path: string): void {
  try {
    renameSync(path, `${path}.broken`);
  } catch (cause) {
    // One that cannot be moved is reported all the same, and not used.
    if (errno(cause) === undefined) throw cause;
  }
}
