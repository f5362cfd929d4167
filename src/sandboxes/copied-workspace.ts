/** The copied workspace of one sandbox and its baseline: what changed, what was there, and what was brought back. */

import { createHash } from 'node:crypto';
import type { Serial } from '../lib/serial.ts';
import type { Files } from '../porter/files.ts';
import { SallyportError } from '../protocol/errors.ts';
import { keyOf, readMark } from './baseline.ts';
import type { SandboxStore } from './ports.ts';
import type { SandboxRecord } from './records.ts';
import {
  type BroughtBack,
  movedBaseline,
  type WorkspaceChange,
  workspaceChanges,
} from './workspace-changes.ts';
import { workspaceCopy } from './workspace-copy.ts';

type Store = Pick<SandboxStore, 'loadManifest' | 'saveManifest' | 'openBaseline' | 'readBaseline'>;

/** Called right before they are used: what is not under way may be cut off when the connection moves. */
type OpenFiles = () => Promise<Files>;

export interface CopiedFolder {
  /** On the host. */
  readonly source: string;
  /** Inside. */
  readonly target: string;
}

export class CopiedWorkspace {
  readonly folder: CopiedFolder;
  readonly #record: SandboxRecord;
  readonly #store: Store;
  /** The pack has one writer, and a manifest that is read is written before the next one reads it. */
  readonly #moves: Serial;

  constructor(record: SandboxRecord, store: Store, moves: Serial) {
    this.folder = copiedFolder(record) ?? refuse(record);
    this.#record = record;
    this.#store = store;
    this.#moves = moves;
  }

  async changes(open: OpenFiles, signal?: AbortSignal): Promise<readonly WorkspaceChange[]> {
    const manifest = await this.#store.loadManifest(this.#record.id);
    return await workspaceChanges(await open(), this.folder.target, manifest ?? {}, signal);
  }

  /** A file as it was put in. */
  async base(path: Buffer): Promise<Buffer> {
    const { id, name } = this.#record;
    const text = (await this.#store.loadManifest(id))?.[keyOf(path)];
    const mark = text === undefined ? undefined : readMark(text);
    if (mark?.kind !== 'file' || mark.keptAt === undefined) {
      const what = mark?.kind === 'file' ? 'was too large to be kept' : 'was no file';
      const shown = JSON.stringify(path.toString('utf8'));
      throw new SallyportError('base_not_kept', `${shown} of sandbox ${name} ${what} when it was copied in`, {
        details: { sandbox: name, path: path.toString('utf8') },
      });
    }
    const chunks: Buffer[] = [];
    for await (const chunk of this.#store.readBaseline(id, mark.keptAt, mark.sizeBytes)) chunks.push(chunk);
    const content = Buffer.concat(chunks, mark.sizeBytes);
    if (createHash('sha256').update(content).digest('hex') !== mark.sha256) {
      throw new SallyportError('state_failed', `what was kept of ${name} is not what was copied in`, {
        details: { sandbox: name, path: path.toString('utf8') },
      });
    }
    return content;
  }

  async moveBaseline(open: OpenFiles, news: readonly BroughtBack[]): Promise<void> {
    await this.#moves.run(async () => {
      const { id } = this.#record;
      const manifest = (await this.#store.loadManifest(id)) ?? {};
      const pack = await this.#store.openBaseline(id);
      const moved = open().then((files) =>
        movedBaseline(files, this.folder.target, { manifest, pack, news }),
      );
      await this.#store.saveManifest(id, await moved.finally(() => pack.close()));
    });
  }
}

export const copiedFolder = ({ plan }: Pick<SandboxRecord, 'plan'>): CopiedFolder | undefined =>
  workspaceCopy(plan);

function refuse({ name, spec }: SandboxRecord): never {
  const { workspace } = spec;
  const advice =
    workspace === undefined
      ? 'Give it a folder with `--workspace` and `--workspace-mode copy`, or copy files out with `sally cp`.'
      : `It works on the folder itself: \`git -C ${workspace.path} diff\` shows what changed.`;
  throw new SallyportError('workspace_not_copied', `sandbox ${name} has no copied workspace`, {
    details: { sandbox: name, ...(workspace === undefined ? {} : { mode: workspace.mode }) },
    advice,
  });
}
