/** The copied workspace of one sandbox and its baseline: what changed, what was there, and what was brought back. */

import { hashLike } from '../lib/content-hash.ts';
import type { Serial } from '../lib/serial.ts';
import { CopiedExcludes } from '../policy/copied-excludes.ts';
import type { CopyExcludes } from '../policy/exclude-patterns.ts';
import type { Files } from '../porter/files.ts';
import { SallyportError } from '../protocol/errors.ts';
import { keyOf, readMark, readPatternFile } from './baseline.ts';
import type { SandboxStore } from './ports.ts';
import type { Manifest, SandboxRecord } from './records.ts';
import {
  type BroughtBack,
  movedBaseline,
  type WorkspaceChange,
  workspaceChanges,
} from './workspace-changes.ts';
import { workspaceCopy } from './workspace-copy.ts';
import type { SandboxWorld } from './world.ts';

type World = Pick<SandboxWorld, 'checkpoint'> & { readonly store: Store };
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
  readonly #excludes: CopyExcludes;
  readonly #isClone: boolean;
  readonly #record: SandboxRecord;
  readonly #store: Store;
  /** The pack has one writer, and a manifest that is read is written before the next one reads it. */
  readonly #moves: Serial;

  readonly #checkpoint: SandboxWorld['checkpoint'];

  constructor(record: SandboxRecord, { store, checkpoint }: World, moves: Serial) {
    const copied = workspaceCopy(record.plan) ?? refuse(record);
    this.folder = copied;
    this.#excludes = copied.excludes;
    this.#isClone = copied.branch !== undefined;
    this.#record = record;
    this.#store = store;
    this.#checkpoint = checkpoint;
    this.#moves = moves;
  }

  async changes(open: OpenFiles, signal?: AbortSignal): Promise<readonly WorkspaceChange[]> {
    const { marks, patternFiles } = await this.#manifest();
    const excludes = new CopiedExcludes(this.#excludes, patternFiles.map(readPatternFile));
    const changes = await workspaceChanges(await open(), this.folder.target, { marks, excludes }, signal);
    return this.#isClone ? changes.filter(isOfClone) : changes;
  }

  /** A file as it was put in. */
  async base(path: Buffer): Promise<Buffer> {
    const { id, name } = this.#record;
    const text = (await this.#manifest()).marks[keyOf(path)];
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
    if (hashLike(mark.sha256, content) !== mark.sha256) {
      throw new SallyportError('state_failed', `what was kept of ${name} is not what was copied in`, {
        details: { sandbox: name, path: path.toString('utf8') },
      });
    }
    return content;
  }

  async moveBaseline(open: OpenFiles, news: readonly BroughtBack[]): Promise<void> {
    await this.#moves.run(async () => {
      const { id } = this.#record;
      const { marks, patternFiles } = await this.#manifest();
      const pack = await this.#store.openBaseline(id);
      const moved = open().then((files) => movedBaseline(files, this.folder.target, { marks, pack, news }));
      // The old one until the new one is there as a whole. What a crash leaves in the pack belongs to neither.
      const renewed = { marks: await moved.finally(() => pack.close()), patternFiles };
      this.#checkpoint('rebase.packed');
      await this.#store.saveManifest(id, renewed);
      this.#checkpoint('rebase.saved');
    });
  }

  async #manifest(): Promise<Manifest> {
    return (await this.#store.loadManifest(this.#record.id)) ?? { marks: {}, patternFiles: [] };
  }
}

/**
 * Of the repository of a clone only new objects count: they are commits that exist nowhere else. Its index, references and logs
 * change with every look at it.
 */
function isOfClone({ path, after }: WorkspaceChange): boolean {
  const text = path.toString('latin1');
  if (text !== '.git' && !text.startsWith('.git/')) return true;
  return text.startsWith('.git/objects/') && after?.kind === 'file';
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
