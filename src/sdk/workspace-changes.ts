/** The changes of a copied workspace as the daemon tells them, and the content on both sides of one. */

import { ContentHash, contentHash, type Hole, isHole } from '../lib/content-hash.ts';
import { withZeros } from '../lib/holes.ts';
import { isTreePath } from '../porter/tree-records.ts';
import { linesContentType } from '../protocol/client-header.ts';
import { SallyportError } from '../protocol/errors.ts';
import type { BroughtBackInput } from '../protocol/requests.ts';
import type { ChangesView, ChangeView } from '../protocol/views.ts';
import { type DaemonClient, segment } from './client.ts';
import { SandboxFiles } from './sandbox-files.ts';
import { readAll } from './transport.ts';

export interface ChangeSide {
  /** `unknown`: neither of the others, or not to be read. */
  readonly kind: 'file' | 'directory' | 'symlink' | 'unknown';
  /** Of a file. */
  readonly mode?: number;
  readonly size?: number;
  /** `holes:` and a hash where the file has whole blocks of zeros: docs/results.md. */
  readonly sha256?: string;
  /** Of a link. */
  readonly linkTarget?: Buffer;
  /** Of a file before: whether its content is kept. */
  readonly kept?: boolean;
  /** False: a file that is too large to compare. It has no hash, and may be as it was copied in. */
  readonly compared?: false;
}

export interface WorkspaceChange {
  /** For people; a name need not be UTF-8. */
  readonly path: string;
  /** Relative to the workspace. */
  readonly pathBytes: Buffer;
  readonly change: 'added' | 'changed' | 'removed';
  /** As it was copied in; absent: it was not there. */
  readonly before?: ChangeSide;
  /** As it is inside; absent: it is gone. */
  readonly after?: ChangeSide;
}

export interface WorkspaceChanges {
  /** The folder of the host that was copied. */
  readonly source: string;
  /** Where its copy is. */
  readonly target: string;
  /** In the order of the paths, so that a folder comes before what is in it. */
  readonly changes: readonly WorkspaceChange[];
}

interface Cancel {
  readonly signal?: AbortSignal;
}

export interface ChangedContent {
  readonly change: WorkspaceChange;
  /** Exactly as listed, or it throws. */
  readonly chunks: AsyncIterable<Buffer | Hole> | Iterable<Buffer>;
}

export type BroughtBackPath = BroughtBackInput;

/** More than these are read by one walk through the whole workspace, which costs less than so many requests. */
const mostSingleFiles = 256;

export class ChangeCalls {
  readonly #client: DaemonClient;
  readonly #path: string;
  readonly #files: SandboxFiles;

  constructor(client: DaemonClient, sandbox: string) {
    this.#client = client;
    this.#path = `/v1/sandboxes/${segment(sandbox)}/changes`;
    this.#files = new SandboxFiles(client, sandbox);
  }

  async list(options: Cancel = {}): Promise<WorkspaceChanges> {
    const { source, target, changes } = await this.#client.json<ChangesView>('GET', this.#path, options);
    return { source, target, changes: changes.map(readChange) };
  }

  /** A file as it was copied in. */
  async base(path: Buffer, options: Cancel = {}): Promise<Buffer> {
    return await readAll(
      await this.#client.open('GET', `${this.#path}/base`, { query: { path }, ...options }),
    );
  }

  /** A file as the list has it. */
  async *inside(target: string, change: WorkspaceChange, options: Cancel = {}): AsyncGenerator<Buffer> {
    yield* withZeros(this.#pieces(target, change, options));
  }

  #pieces(target: string, change: WorkspaceChange, options: Cancel): AsyncGenerator<Buffer | Hole> {
    const path = Buffer.concat([Buffer.from(`${target}/`), change.pathBytes]);
    const length = (change.after?.size ?? 0) + 1;
    return asListed(change, this.#files.pieces(path, { length, ...options }));
  }

  /** The same of several, in any order. Each is to be read before the next one is asked for. */
  async *contents(
    target: string,
    changes: readonly WorkspaceChange[],
    options: Cancel = {},
  ): AsyncGenerator<ChangedContent> {
    if (changes.length <= mostSingleFiles) {
      for (const change of changes) yield { change, chunks: this.#pieces(target, change, options) };
      return;
    }
    const wanted = new Map(changes.map((change) => [change.pathBytes.toString('latin1'), change]));
    for await (const entry of this.#files.getTree(target, options)) {
      const key = entry.path.toString('latin1');
      const change = entry.kind === 'file' ? wanted.get(key) : undefined;
      if (change === undefined) continue;
      wanted.delete(key);
      yield {
        change,
        chunks: entry.content === undefined ? asListed(change, entry.pieces) : whole(change, entry.content),
      };
    }
    for (const change of wanted.values()) throw changedInside(change);
  }

  async broughtBack(paths: readonly BroughtBackPath[]): Promise<void> {
    if (paths.length === 0) return;
    await this.#client.upload(`${this.#path}/brought-back`, linesOf(paths), {
      contentType: linesContentType,
    });
  }
}

const linesInOnePiece = 500;

async function* linesOf(values: readonly unknown[]): AsyncGenerator<Buffer> {
  for (let from = 0; from < values.length; from += linesInOnePiece) {
    const lines = values.slice(from, from + linesInOnePiece).map((value) => `${JSON.stringify(value)}\n`);
    yield Buffer.from(lines.join(''));
  }
}

/**
 * SECURITY: the path may lead elsewhere by now, and may have no end. What comes is bounded by the size that was told, and is
 * the file only if its hash is.
 */
async function* asListed(
  change: WorkspaceChange,
  pieces: AsyncIterable<Buffer | Hole>,
): AsyncGenerator<Buffer | Hole> {
  const { size = 0, sha256 } = change.after ?? {};
  const hash = new ContentHash();
  let bytes = 0;
  for await (const piece of pieces) {
    bytes += isHole(piece) ? piece.holeBytes : piece.length;
    if (bytes > size) throw changedInside(change);
    hash.update(piece);
    yield piece;
  }
  if (hash.digest() !== sha256) throw changedInside(change);
}

/** The same of what is here already. */
function whole(change: WorkspaceChange, content: Buffer): readonly Buffer[] {
  if (contentHash(content) !== change.after?.sha256) throw changedInside(change);
  return [content];
}

const changedInside = ({ path }: WorkspaceChange): SallyportError =>
  new SallyportError('changed_meanwhile', `${JSON.stringify(path)} changed inside while it was read`, {
    details: { path },
  });

function readChange(view: ChangeView): WorkspaceChange {
  const pathBytes = bytesOf(view.path, view.path_base64);
  // SECURITY: paths are made inside, and become paths of this machine.
  if (!isTreePath(pathBytes))
    throw new SallyportError('internal', 'the daemon told a path that leads elsewhere');
  const { path, change, before, after } = view;
  return {
    path,
    pathBytes,
    change,
    ...(before === undefined ? {} : { before: readSide(before) }),
    ...(after === undefined ? {} : { after: readSide(after) }),
  };
}

function readSide(side: NonNullable<ChangeView['before']>): ChangeSide {
  const { link_target, link_target_base64, ...rest } = side;
  const linkTarget =
    link_target === undefined ? {} : { linkTarget: bytesOf(link_target, link_target_base64) };
  return { ...(rest as ChangeSide), ...linkTarget };
}

const bytesOf = (text: string, base64: string | undefined): Buffer =>
  base64 === undefined ? Buffer.from(text) : Buffer.from(base64, 'base64');
