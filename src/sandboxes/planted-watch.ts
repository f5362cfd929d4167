/**
 * Finds what a sandbox planted in its live workspace and in folders of tools for the host to execute, by comparing them with what they
 * were when the sandbox was made. A scan runs in the background, one at a time and at most one queued; no exec waits for it.
 */

import type { WorkspaceScanView } from '../protocol/views.ts';
import { foldsCase } from './folds-case.ts';
import { areasOf, isScanned, type ScanArea } from './planted-areas.ts';
import {
  type PlantedKind,
  type Sighting,
  type Walked,
  type WalkLimits,
  walkForPlanted,
} from './planted-walk.ts';
import type { Manifest, Marks, SandboxRecord } from './records.ts';

/** A workspace that is copied has a manifest of its own, so tools have another. */
export type BaselineOf = 'workspace' | 'tools';

export interface PlantedHost {
  readonly record: () => SandboxRecord;
  readonly now: () => string;
  readonly tell: (code: string, message: string) => void;
  readonly report: (what: string, error: unknown) => void;
  /** What was there when the sandbox was made, by path. */
  readonly load: (of: BaselineOf) => Promise<Manifest | undefined>;
  readonly save: (of: BaselineOf, baseline: Manifest) => Promise<void>;
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
  readonly area: ScanArea;
  readonly path: string;
  readonly isNew: boolean;
  readonly foundAt: string;
}

interface Seen extends Sighting {
  readonly area: ScanArea;
  readonly path: string;
}

export class PlantedWatch {
  readonly #host: PlantedHost;
  #baseline: Marks | undefined;
  #findings: ReadonlyMap<string, Finding> = new Map();
  #cut: string | undefined;
  #running: Promise<void> | undefined;
  #queued: Promise<void> | undefined;
  #taking: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #lastMs = 0;

  constructor(host: PlantedHost) {
    this.#host = host;
  }

  /** There is a live workspace, and not all of it is writable by request; or a tool's folder in which something is held. */
  get isNeeded(): boolean {
    return isScanned(this.#host.record());
  }

  /** Before anything runs in the sandbox for the first time. */
  takeBaseline(): Promise<void> {
    const taking = this.#takeBaseline();
    this.#taking = taking.catch(() => {});
    return taking;
  }

  async #takeBaseline(): Promise<void> {
    const areas = areasOf(this.#host.record());
    if (areas.length === 0) return;
    const { seen, cut } = await walkAll(areas, baselineLimits, (): Walked => {
      return { sightings: new Map(), cut: 'the folder could not be read' };
    });
    const marks = (isWanted: (seen: Seen) => boolean): Marks =>
      Object.fromEntries([...seen].filter(([, one]) => isWanted(one)).map(([key, { mark }]) => [key, mark]));
    this.#baseline = marks(() => true);
    for (const of of kindsOf(areas))
      await this.#host.save(of, { marks: marks(({ area }) => kindOf(area) === of), patternFiles: [] });
    if (cut !== undefined)
      this.#host.tell(
        'scan_incomplete',
        `not everything was scanned before the sandbox started (${cut}): what was there before may be reported as planted`,
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
      planted: [...this.#findings.values()].map((finding) => ({
        path: shown(finding),
        ...(finding.area.mountId === undefined ? {} : { tool: finding.area.mountId }),
        kind: finding.kind,
        how: finding.isNew ? 'new' : 'changed',
        found_at: finding.foundAt,
        advice: adviceOn(finding, this.#host.record()),
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
    const areas = areasOf(this.#host.record());
    if (areas.length === 0) return;
    // Without it everything that was there before would be new.
    await this.#taking;
    const beganMs = performance.now();
    try {
      this.#baseline ??= await this.#load(areas);
      this.#take(await walkAll(areas, limits));
    } catch (error) {
      this.#cut = 'the folder could not be read';
      this.#host.report(`scan what ${this.#host.record().name} may have planted`, error);
    }
    this.#lastMs = performance.now() - beganMs;
  }

  async #load(areas: readonly ScanArea[]): Promise<Marks> {
    const all = await Promise.all(kindsOf(areas).map(async (of) => (await this.#host.load(of))?.marks ?? {}));
    return Object.assign({}, ...all) as Marks;
  }

  #take({ seen, cut }: WalkedAll): void {
    const marks = this.#baseline ?? {};
    const findings = new Map<string, Finding>();
    const news: Finding[] = [];
    for (const [key, one] of seen) {
      if (marks[key] === one.mark) continue;
      const known = this.#findings.get(key);
      const isKnown = known?.mark === one.mark;
      const foundAt = isKnown ? known.foundAt : this.#host.now();
      const finding: Finding = { ...one, isNew: marks[key] === undefined, foundAt };
      findings.set(key, finding);
      if (!isKnown) news.push(finding);
    }
    this.#findings = findings;
    this.#cut = cut;
    for (const of of ['workspace', 'tools'] as const) {
      const its = news.filter(({ area }) => kindOf(area) === of);
      if (its.length > 0) this.#host.tell(eventCodes[of], newsOf(of, its));
    }
  }
}

const eventCodes = { workspace: 'workspace_planted', tools: 'tool_planted' } as const;

const kindOf = ({ mountId }: ScanArea): BaselineOf => (mountId === undefined ? 'workspace' : 'tools');
const kindsOf = (areas: readonly ScanArea[]): readonly BaselineOf[] => [...new Set(areas.map(kindOf))];

/** No name has a NUL in it. */
const keyOf = ({ mountId }: ScanArea, path: string): string =>
  mountId === undefined ? path : `${mountId}\0${path}`;

interface WalkedAll {
  readonly seen: ReadonlyMap<string, Seen>;
  readonly cut?: string;
}

/** One after the other, in the time of one. `failed`: instead of one that cannot be read; absent: then all of it fails. */
async function walkAll(
  areas: readonly ScanArea[],
  limits: WalkLimits,
  failed?: () => Walked,
): Promise<WalkedAll> {
  const seen = new Map<string, Seen>();
  const cuts: string[] = [];
  const endMs = performance.now() + limits.timeMs;
  for (const area of areas) {
    const timeMs = Math.max(0, endMs - performance.now());
    const walking = walkArea(area, { ...limits, timeMs });
    const { sightings, cut } = await (failed === undefined ? walking : walking.catch(failed));
    for (const [path, sighting] of sightings) seen.set(keyOf(area, path), { ...sighting, area, path });
    if (cut !== undefined) cuts.push(cut);
  }
  return { seen, ...(cuts[0] === undefined ? {} : { cut: cuts[0] }) };
}

async function walkArea({ request }: ScanArea, limits: WalkLimits): Promise<Walked> {
  return await walkForPlanted({ ...request, foldsCase: await foldsCase(request.root), limits });
}

const shown = ({ area, path }: Seen): string => area.shown(path);

function newsOf(of: BaselineOf, findings: readonly Finding[]): string {
  const list = findings
    .slice(0, mostShown)
    .map((finding) => `${shown(finding)} (${finding.kind}, ${finding.isNew ? 'new' : 'changed'})`);
  const more = findings.length > mostShown ? ` and ${findings.length - mostShown} more` : '';
  const where = of === 'workspace' ? 'the workspace' : 'folders of tools';
  return `programs of this machine may execute what appeared in ${where}: ${list.join(', ')}${more}`;
}

function adviceOn({ kind, area }: Finding, { name }: SandboxRecord): string {
  return kind === 'name' && area.mountId !== undefined
    ? 'read it before you start the tool whose folder it is in; remove it if you do not know it'
    : adviceOnKind(kind, name);
}

function adviceOnKind(kind: PlantedKind, name: string): string {
  switch (kind) {
    case 'git directory':
    case 'git pointer':
      return 'do not run git there before you read its config and hooks; remove it if you do not know it';
    case 'git operation':
      return 'do not continue the operation: git would run the commands that it lists; `git rebase --quit` or remove it';
    case 'invalid HEAD':
      return `git no longer takes .git for a repository and looks elsewhere: stop the sandbox (sally stop ${name}) and restore .git/HEAD before you run git`;
    case 'closed folder':
      return 'git may find a repository in it that the scan cannot see: `chmod u+r` it and read what is in it before you run git above it';
    case 'npx program':
      return 'do not run `npx sally` there: npm runs what this package.json names instead of the installed program';
    case 'name':
      return 'read it before you open the folder with the tool that it is for; remove it if you do not know it';
  }
}
