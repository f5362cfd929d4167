/**
 * Finds what a sandbox planted in its live workspace for the host to execute, by comparing the workspace with what it was when the
 * sandbox was made. A scan runs in the background, one at a time and at most one queued; no exec waits for it.
 */

import type { WorkspaceScanView } from '../protocol/views.ts';
import { foldsCase } from './folds-case.ts';
import {
  type PlantedKind,
  type Sighting,
  type Walked,
  type WalkRequest,
  walkForPlanted,
} from './planted-walk.ts';
import type { Manifest, Marks, SandboxRecord } from './records.ts';

export interface PlantedHost {
  readonly record: () => SandboxRecord;
  readonly now: () => string;
  readonly tell: (code: string, message: string) => void;
  readonly report: (what: string, error: unknown) => void;
  /** What was there when the sandbox was made, by path. */
  readonly load: () => Promise<Manifest | undefined>;
  readonly save: (baseline: Manifest) => Promise<void>;
}

/** A caller who asks waits this long. */
export const scanPatienceMs = 2000;
const limits = { entries: 400_000, depth: 40, timeMs: 15_000 };
/** A create waits for the baseline, so that takes no longer. */
const baselineLimits = { ...limits, timeMs: 5000 };
/** Scans that nobody waits for leave the machine alone for ten times as long as they took, and this long at least. */
const restMs = 500;
const restFactor = 10;
const mostShown = 20;

interface Finding extends Sighting {
  readonly isNew: boolean;
  readonly foundAt: string;
}

export class PlantedWatch {
  readonly #host: PlantedHost;
  #baseline: Marks | undefined;
  #findings: ReadonlyMap<string, Finding> = new Map();
  #cut: string | undefined;
  #running: Promise<void> | undefined;
  #queued: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #lastMs = 0;

  constructor(host: PlantedHost) {
    this.#host = host;
  }

  /** There is a live workspace, and not all of it is writable by request. */
  get isNeeded(): boolean {
    return requestOf(this.#host.record()) !== undefined;
  }

  /** Before anything runs in the sandbox for the first time. */
  async takeBaseline(): Promise<void> {
    const request = requestOf(this.#host.record());
    if (request === undefined) return;
    const { sightings, cut } = await walkRequested({ ...request, limits: baselineLimits }).catch(
      (): Walked => ({ sightings: new Map(), cut: 'the folder could not be read' }),
    );
    this.#baseline = Object.fromEntries([...sightings].map(([path, { mark }]) => [path, mark]));
    await this.#host.save({ marks: this.#baseline, patternFiles: [] });
    if (cut !== undefined)
      this.#host.tell(
        'scan_incomplete',
        `the workspace was not scanned as a whole before the sandbox started (${cut}): what was there before may be reported as planted`,
      );
  }

  /** Something may have been planted. Nobody waits. */
  request(): void {
    if (this.#timer !== undefined || !this.isNeeded) return;
    const pauseMs = Math.max(restMs, this.#lastMs * restFactor);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#fresh();
    }, pauseMs);
    this.#timer.unref();
  }

  /** The result of a scan that begins now, or what is known when the patience ends. Undefined: there is nothing to scan. */
  async result(patienceMs: number = scanPatienceMs): Promise<WorkspaceScanView | undefined> {
    if (!this.isNeeded) return undefined;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<false>((resolve) => {
      timer = setTimeout(() => resolve(false), patienceMs);
    });
    const isFinished = await Promise.race([this.#fresh().then(() => true), late]);
    clearTimeout(timer);
    return {
      finished: isFinished,
      ...(this.#cut === undefined ? {} : { incomplete: this.#cut }),
      planted: [...this.#findings].map(([path, { kind, isNew, foundAt }]) => ({
        path: shown(path),
        kind,
        how: isNew ? 'new' : 'changed',
        found_at: foundAt,
        advice: adviceOn(kind, this.#host.record()),
      })),
    };
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** A scan that runs already may have passed what was just planted: then the next one counts. */
  async #fresh(): Promise<void> {
    if (this.#running === undefined) {
      this.#running = this.#scan().finally(() => {
        this.#running = undefined;
      });
      return await this.#running;
    }
    this.#queued ??= this.#running.then(() => {
      this.#queued = undefined;
      return this.#fresh();
    });
    await this.#queued;
  }

  /** Never rejects: a scan that failed says so. */
  async #scan(): Promise<void> {
    const request = requestOf(this.#host.record());
    if (request === undefined) return;
    const beganMs = performance.now();
    try {
      this.#baseline ??= (await this.#host.load())?.marks ?? {};
      this.#take(await walkRequested({ ...request, limits }));
    } catch (error) {
      this.#cut = 'the folder could not be read';
      this.#host.report(`scan the workspace of ${this.#host.record().name}`, error);
    }
    this.#lastMs = performance.now() - beganMs;
  }

  #take({ sightings, cut }: Walked): void {
    const marks = this.#baseline ?? {};
    const findings = new Map<string, Finding>();
    const news: string[] = [];
    for (const [path, sighting] of sightings) {
      if (marks[path] === sighting.mark) continue;
      const known = this.#findings.get(path);
      const isKnown = known?.mark === sighting.mark;
      const foundAt = isKnown ? known.foundAt : this.#host.now();
      findings.set(path, { ...sighting, isNew: marks[path] === undefined, foundAt });
      if (!isKnown) news.push(path);
    }
    this.#findings = findings;
    this.#cut = cut;
    if (news.length > 0) this.#host.tell('workspace_planted', newsOf(news, findings));
  }
}

async function walkRequested(request: Omit<WalkRequest, 'foldsCase'>): Promise<Walked> {
  return await walkForPlanted({ ...request, foldsCase: await foldsCase(request.root) });
}

function requestOf({ spec, plan }: SandboxRecord) {
  const [root] = plan.mounts;
  const { workspace } = spec;
  if (root === undefined || workspace?.mode !== 'live' || plan.stubs === undefined) return undefined;
  if (workspace.dangerously_unprotected?.includes('all') === true) return undefined;
  const within = plan.mounts.filter(({ source }) => source.startsWith(`${root.source}/`));
  const relative = (path: string): string =>
    Buffer.from(path.slice(root.source.length + 1)).toString('latin1');
  const held = new Set(within.filter(({ writable }) => !writable).map(({ source }) => relative(source)));
  // By request; it is said elsewhere.
  for (const path of plan.unprotected ?? []) held.add(path);
  const isRepository = within.some(({ source, writable }) => writable && relative(source) === '.git');
  return { root: root.source, held, isRepository, worktreeDir: plan.worktreeDir };
}

const shown = (path: string): string => Buffer.from(path, 'latin1').toString('utf8');

function newsOf(paths: readonly string[], findings: ReadonlyMap<string, Finding>): string {
  const list = paths
    .slice(0, mostShown)
    .map(
      (path) =>
        `${shown(path)} (${findings.get(path)?.kind}, ${findings.get(path)?.isNew === true ? 'new' : 'changed'})`,
    );
  const more = paths.length > mostShown ? ` and ${paths.length - mostShown} more` : '';
  return `programs of this machine may execute what appeared in the workspace: ${list.join(', ')}${more}`;
}

function adviceOn(kind: PlantedKind, { name }: SandboxRecord): string {
  switch (kind) {
    case 'git directory':
    case 'git pointer':
      return 'do not run git there before you read its config and hooks; remove it if you do not know it';
    case 'git operation':
      return 'do not continue the operation: git would run the commands that it lists; `git rebase --quit` or remove it';
    case 'invalid HEAD':
      return `git no longer takes .git for a repository and looks elsewhere: stop the sandbox (sally stop ${name}) and restore .git/HEAD before you run git`;
    case 'name':
      return 'read it before you open the folder with the tool that it is for; remove it if you do not know it';
  }
}
