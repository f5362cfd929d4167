/** The changes of a copied workspace as the daemon tells them, and the content on both sides of one. */

import { createHash } from 'node:crypto';
import { isTreePath } from '../porter/tree-records.ts';
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
  readonly sha256?: string;
  /** Of a link. */
  readonly linkTarget?: Buffer;
  /** Of a file before: whether its content is kept. */
  readonly kept?: boolean;
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

export type BroughtBackPath = BroughtBackInput['paths'][number];

/** Below the daemon's bound for a body, whatever the paths are. */
const pathsAtOnce = 100;

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

  /**
   * A file as the list has it. SECURITY: the path may lead elsewhere by now, and may have no end; what comes is bounded by
   * the size that was told, and is the file only if its hash is.
   */
  async *inside(target: string, change: WorkspaceChange, options: Cancel = {}): AsyncGenerator<Buffer> {
    const { size = 0, sha256 } = change.after ?? {};
    const path = Buffer.concat([Buffer.from(`${target}/`), change.pathBytes]);
    const hash = createHash('sha256');
    for await (const chunk of this.#files.stream(path, { length: size + 1, ...options })) {
      hash.update(chunk);
      yield chunk;
    }
    if (hash.digest('hex') === sha256) return;
    throw new SallyportError(
      'changed_meanwhile',
      `${JSON.stringify(change.path)} changed inside while it was read`,
      { details: { path: change.path } },
    );
  }

  async broughtBack(paths: readonly BroughtBackPath[], options: Cancel = {}): Promise<void> {
    for (let at = 0; at < paths.length; at += pathsAtOnce) {
      const body: BroughtBackInput = { paths: paths.slice(at, at + pathsAtOnce) };
      await this.#client.json('POST', `${this.#path}/brought-back`, { body, ...options });
    }
  }
}

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
