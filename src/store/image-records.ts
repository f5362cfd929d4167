/**
 * What is remembered of project images: `images/` in the state folder. The engine is true about which images there are; this is
 * about what they were made from and when a registry was asked. A file that cannot be understood is as if it were not there:
 * an image is then looked for by its inputs, and found.
 */

import { createHash } from 'node:crypto';
import { appendFileSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { BaseCheck, BuildLog, BuildRecord, CachedDigest, ImageRecords } from '../images/ports.ts';
import { errno, stateFailure } from './state-failure.ts';
import { fileMode, provideFolder, replaceFile } from './state-folder.ts';

const digest = z.string().max(200);
const buildSchema = z.strictObject({
  folder: z.string(),
  reference: z.string(),
  imageId: z.string(),
  fingerprint: digest,
  inputs: z.array(z.strictObject({ name: z.string(), digest })),
  builtAt: z.iso.datetime(),
  durationMs: z.number().optional(),
});
const baseSchema = z.record(
  z.string(),
  z.strictObject({ checkedAt: z.iso.datetime(), failedAt: z.iso.datetime().optional() }),
);
const digestsSchema = z.record(
  z.string(),
  z.tuple([z.tuple([z.number(), z.number(), z.number(), z.number(), z.number()]), digest]),
);

/** Of one build; what comes after it is dropped, and the log says so. */
const mostLogBytes = 4 * 2 ** 20;
/** Folders of which digests and the last build are held in memory, the last used ones. */
const heldFolders = 8;

export class ImageRecordFiles implements ImageRecords {
  readonly #root: string;
  /** By folder. */
  readonly #digests = new Map<string, Map<string, CachedDigest>>();
  /** By folder: a build of ten thousand inputs takes longer to read than to look whether one of them changed. */
  readonly #lastBuilds = new Map<string, BuildRecord>();

  constructor(stateDir: string) {
    this.#root = join(stateDir, 'images');
  }

  builds(): readonly BuildRecord[] {
    return this.#names().flatMap((key) => {
      const record = this.#read(join(this.#root, key, 'build.json'), buildSchema);
      return record === undefined ? [] : [record as BuildRecord];
    });
  }

  findBuild(folder: string): BuildRecord | undefined {
    const held = this.#lastBuilds.get(folder);
    if (held !== undefined) return held;
    const record = this.#read(this.#file(folder, 'build.json'), buildSchema) as BuildRecord | undefined;
    if (record?.folder !== folder) return undefined;
    hold(this.#lastBuilds, folder, record);
    return record;
  }

  saveBuild(record: BuildRecord): void {
    this.#write(record.folder, 'build.json', record);
    hold(this.#lastBuilds, record.folder, record);
  }

  forgetBuild(folder: string): void {
    this.#digests.delete(folder);
    this.#lastBuilds.delete(folder);
    rmSync(join(this.#root, keyOf(folder)), { recursive: true, force: true });
  }

  loadDigests(folder: string): Map<string, CachedDigest> {
    const held = this.#digests.get(folder);
    if (held !== undefined) return held;
    const read = this.#read(this.#file(folder, 'digests.json'), digestsSchema) ?? {};
    const cache = new Map(Object.entries(read).map(([path, [seen, sha]]) => [path, { seen, digest: sha }]));
    hold(this.#digests, folder, cache);
    return cache;
  }

  saveDigests(folder: string, digests: ReadonlyMap<string, CachedDigest>): void {
    const cache = new Map(digests);
    hold(this.#digests, folder, cache);
    const written = Object.fromEntries(
      [...cache].map(([path, { seen, digest: sha }]) => [path, [seen, sha]]),
    );
    this.#write(folder, 'digests.json', written);
  }

  baseChecks(): Readonly<Record<string, BaseCheck>> {
    return (this.#read(join(this.#root, 'bases.json'), baseSchema) ?? {}) as Record<string, BaseCheck>;
  }

  saveBaseCheck(reference: string, check: BaseCheck): void {
    provideFolder(this.#root);
    const checks = { ...this.baseChecks(), [reference]: check };
    replaceFile(join(this.#root, 'bases.json'), `${JSON.stringify(checks, null, 2)}\n`);
  }

  openLog(folder: string): BuildLog {
    provideFolder(join(this.#root, keyOf(folder)));
    const path = this.#file(folder, 'build.log');
    replaceFile(path, '');
    let left = mostLogBytes;
    const append = (text: string): void => {
      try {
        appendFileSync(path, text, { mode: fileMode });
      } catch {
        // A build is worth more than the words about it.
        left = 0;
      }
    };
    return {
      write: (text) => {
        if (left <= 0) return;
        left -= Buffer.byteLength(text);
        append(left > 0 ? text : '\n[the rest of the output was not kept]\n');
      },
      close: () => {},
    };
  }

  readLog(folder: string): string | undefined {
    return readText(this.#file(folder, 'build.log'));
  }

  #names(): readonly string[] {
    try {
      return readdirSync(this.#root).filter((name) => /^[0-9a-f]{32}$/.test(name));
    } catch (cause) {
      if (errno(cause) === 'ENOENT') return [];
      throw stateFailure('listing the builds of images', this.#root, cause);
    }
  }

  #file(folder: string, name: string): string {
    return join(this.#root, keyOf(folder), name);
  }

  #read<T>(path: string, schema: z.ZodType<T>): T | undefined {
    const text = readText(path);
    if (text === undefined) return undefined;
    try {
      return schema.safeParse(JSON.parse(text)).data;
    } catch {
      return undefined;
    }
  }

  #write(folder: string, name: string, value: unknown): void {
    provideFolder(join(this.#root, keyOf(folder)));
    replaceFile(this.#file(folder, name), `${JSON.stringify(value)}\n`);
  }
}

function hold<T>(held: Map<string, T>, folder: string, value: T): void {
  held.delete(folder);
  held.set(folder, value);
  const [oldest] = held.keys();
  if (held.size > heldFolders && oldest !== undefined) held.delete(oldest);
}

const keyOf = (folder: string): string => createHash('sha256').update(folder).digest('hex').slice(0, 32);

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    if (errno(cause) === 'ENOENT') return undefined;
    throw stateFailure('reading what is known of an image', path, cause);
  }
}
