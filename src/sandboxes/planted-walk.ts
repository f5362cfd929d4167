/**
 * Walks a live workspace, or the folder of a built-in tool, on the host and finds what a host would execute from it: git directories,
 * pointers to them, operations that git was left in the middle of, and names of `policy/executed-names.ts`, in a tool's folder also
 * those of `policy/tool-names.ts`. Each gets a mark that changes with it.
 *
 * SECURITY: a sandbox swaps things while this walks. It goes from open folder to open folder, follows no link, opens no file but a
 * repository's HEAD and manifests of packages, and stops at a number of entries, a depth and a time. It reads only.
 */

import { createHash } from 'node:crypto';
import { constants, type Dirent } from 'node:fs';
import { type FileHandle, lstat, open, opendir } from 'node:fs/promises';
import { programsOfManifest } from '../policy/program-paths.ts';
import {
  foldedName,
  isExecutedPlace,
  isGitDirectory,
  isGitName,
  isProgramPlace,
} from '../policy/protected-names.ts';

export type PlantedKind =
  | 'git directory'
  | 'git pointer'
  | 'git operation'
  | 'invalid HEAD'
  | 'closed folder'
  | 'npx program'
  | 'name';

export interface Sighting {
  readonly kind: PlantedKind;
  /** Another one: it was changed, or another thing is in its place. */
  readonly mark: string;
}

export interface WalkLimits {
  readonly entries: number;
  readonly depth: number;
  readonly timeMs: number;
}

export interface Walked {
  /** By path relative to the root. */
  readonly sightings: ReadonlyMap<string, Sighting>;
  /** Why not everything was seen. */
  readonly cut?: string;
}

export interface WalkRequest {
  readonly root: string;
  /** Relative paths that are read-only inside: nothing can be planted there. */
  readonly held: ReadonlySet<string>;
  /** `.git` of the root was a repository when its mounts were decided. */
  readonly isRepository: boolean;
  /** Absolute: where the repository of a worktree keeps what belongs to it. The sandbox writes to it. */
  readonly worktreeDir?: string | undefined;
  /** `.VSCODE` is `.vscode` there, and only one of them is held: what is held is looked at like the rest. */
  readonly foldsCase?: boolean;
  /** Of a tool's folder: whether the folded parts of a path from the root on are what the host executes. */
  readonly isToolName?: (parts: readonly string[]) => boolean;
  readonly limits: WalkLimits;
}

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;
const folderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK;
const isLinux = process.platform === 'linux';
/** What git is in the middle of; going on with it runs commands that it lists. */
const operations: ReadonlySet<string> = new Set(['rebase-merge', 'rebase-apply', 'sequencer']);
/** Of a git directory: folders that are large and in which nothing is obeyed, or that are looked at as a whole. */
const keptByGit: ReadonlySet<string> = new Set(['objects', 'refs', 'logs', 'lfs', 'annex', ...operations]);
/** Of a git directory: what git obeys. */
const obeyed = ['config', 'config.worktree', 'commondir', 'gitdir', 'hooks', 'info/attributes'];
/** Installed by package managers by the thousand and opened by nobody: only git directories count there. */
const installed: ReadonlySet<string> = new Set(['node_modules', 'site-packages']);
const mostMarked = 500;
const mostSightings = 20_000;
const headBytes = 256;
const mostManifestBytes = 1024 * 1024;
const listedAtOnce = 1024;

type Kind = 'directory' | 'file' | 'link' | 'other';

interface Entry {
  /** Its bytes as latin1, so that every name can be opened again. */
  readonly name: string;
  readonly folded: string;
  readonly kind: Kind;
}

interface Place {
  readonly handle: FileHandle;
  /** For calls that want a path; latin1, good as long as the handle is open. */
  readonly at: string;
  /** Latin1; empty for the root. */
  readonly path: string;
  /** Folded parts of the path. */
  readonly parts: readonly string[];
  readonly isInstalled: boolean;
}

export async function walkForPlanted(request: WalkRequest): Promise<Walked> {
  const walk = new Walk(request);
  await walk.run();
  return walk.result();
}

class Walk {
  readonly #request: WalkRequest;
  readonly #sightings = new Map<string, Sighting>();
  readonly #endMs: number;
  #entries = 0;
  /** Why the walk ended early. */
  #cut: string | undefined;
  /** What it passed by. */
  #missed: string | undefined;

  constructor(request: WalkRequest) {
    this.#request = request;
    this.#endMs = performance.now() + request.limits.timeMs;
  }

  async run(): Promise<void> {
    const { root, worktreeDir } = this.#request;
    await this.#at(root, '', (place) => this.#visit(place));
    if (worktreeDir === undefined) return;
    const path = Buffer.from(worktreeDir).toString('latin1');
    // It goes with the worktree.
    await this.#at(worktreeDir, path, (place) => this.#operations(place)).catch(() => {});
  }

  async #at(folder: string, path: string, visit: (place: Place) => Promise<void>): Promise<void> {
    const handle = await open(folder, folderFlags);
    try {
      const at = placeOf(handle, Buffer.from(folder).toString('latin1'));
      await visit({ handle, at, path, parts: [], isInstalled: false });
    } finally {
      await handle.close();
    }
  }

  result(): Walked {
    const cut = this.#cut ?? this.#missed;
    return { sightings: this.#sightings, ...(cut === undefined ? {} : { cut }) };
  }

  async #visit(place: Place): Promise<void> {
    const entries = await this.#list(place);
    const names = new Set(entries.map(({ folded }) => folded));
    const isGit = isGitDirectory((name) => names.has(name));
    if (isGit) await this.#see(place.path === '' ? '.' : place.path, 'git directory', gitMark(place));
    for (const entry of entries) {
      if (this.#isOver()) return;
      if (isGit && operations.has(entry.folded)) await this.#seeEntry(place, entry, 'git operation');
      // The store of a repository is large, and nothing in it is obeyed.
      else if (isGit && place.path !== '' && (entry.folded === 'objects' || entry.folded === 'refs'))
        continue;
      else await this.#judge(place, entry);
    }
  }

  async #judge(place: Place, entry: Entry): Promise<void> {
    const path = pathOf(place, entry);
    if (this.#isHeld(path)) {
      // A placeholder is empty, and comes and goes with the sandbox.
      if (this.#request.foldsCase !== true || (await isEmpty(place, entry))) return;
    }
    if (isGitName(entry.folded)) {
      await this.#git(place, entry);
      return;
    }
    const parts = [...place.parts, entry.folded];
    if (entry.folded === 'package.json' && !place.isInstalled) await this.#manifest(place, entry);
    const isNamed = this.#request.isToolName?.(parts) === true;
    if (isNamed || (place.isInstalled ? isProgramPlace(parts) : isExecutedPlace(parts)))
      await this.#seeEntry(place, entry, 'name');
    else if (entry.kind === 'directory') await this.#enter(place, entry, (inside) => this.#visit(inside));
  }

  /** SECURITY: `npx sally` runs what the manifest of the folder calls `sally` before what is installed. */
  async #manifest(place: Place, entry: Entry): Promise<void> {
    // A link may lead anywhere, also to something that changes.
    if (entry.kind === 'link') return await this.#seeEntry(place, entry, 'npx program');
    const text = await readAt(childOf(place, entry.name), mostManifestBytes);
    if (text === undefined) return;
    if (text.length === mostManifestBytes) return await this.#seeEntry(place, entry, 'npx program');
    const programs = programsOfManifest(text);
    if (programs.length === 0) return;
    const mark = createHash('sha256').update(JSON.stringify(programs)).digest('base64url').slice(0, 22);
    await this.#see(pathOf(place, entry), 'npx program', Promise.resolve(mark));
  }

  /** A `.git`: a folder, or something that leads to one. */
  async #git(place: Place, entry: Entry): Promise<void> {
    if (entry.kind !== 'directory') {
      await this.#seeEntry(place, entry, 'git pointer');
      return;
    }
    const isOwn = place.path === '' && entry.name === '.git' && this.#request.isRepository;
    if (!isOwn) await this.#enter(place, entry, (inside) => this.#visit(inside));
    else if (await mayEnter(place, entry))
      await this.#enter(place, entry, (inside) => this.#ownRepository(inside));
    else await this.#invalidHead(pathOf(place, entry));
  }

  /** What git obeys of it is held. The rest is writable, as commits need it. */
  async #ownRepository(place: Place): Promise<void> {
    if (!(await isUsable(place))) await this.#invalidHead(place.path);
    if (this.#request.foldsCase === true) await this.#see(place.path, 'git directory', gitMark(place));
    await this.#operations(place);
    for (const entry of await this.#list(place))
      if (entry.kind === 'directory' && !keptByGit.has(entry.folded)) await this.#judge(place, entry);
  }

  async #operations(place: Place): Promise<void> {
    for (const entry of await this.#list(place))
      if (operations.has(entry.folded)) await this.#seeEntry(place, entry, 'git operation');
  }

  async #invalidHead(git: string): Promise<void> {
    await this.#see(`${git}/HEAD`, 'invalid HEAD', Promise.resolve('invalid'));
  }

  #isHeld(path: string): boolean {
    return this.#request.held.has(path);
  }

  async #enter(place: Place, entry: Entry, visit: (inside: Place) => Promise<void>): Promise<void> {
    const { depth } = this.#request.limits;
    if (place.parts.length >= depth) {
      this.#missed ??= `folders deeper than ${depth} were not scanned`;
      return;
    }
    const handle = await open(childOf(place, entry.name), folderFlags).catch(() => undefined);
    if (handle === undefined) {
      await this.#closed(place, entry);
      return;
    }
    const isInstalled = place.isInstalled || installed.has(entry.folded);
    const parts = [...place.parts, entry.folded];
    try {
      const at = placeOf(handle, `${place.at}/${entry.name}`);
      await visit({ handle, at, path: pathOf(place, entry), parts, isInstalled });
    } finally {
      await handle.close();
    }
  }

  /** SECURITY: git only has to pass through a folder, so one that its owner may not list hides what git finds in it. */
  async #closed(place: Place, entry: Entry): Promise<void> {
    const facts = await lstat(childOf(place, entry.name)).catch(() => undefined);
    // It went, or something else is in its place: the next scan sees that.
    if (facts?.isDirectory() !== true) return;
    // What belongs to somebody else a sandbox cannot change, and what nobody passes through is found when that changes.
    if (facts.uid !== process.geteuid?.() || (facts.mode & ownerEnters) === 0) return;
    this.#missed ??= 'a folder that its owner may not list was not scanned';
    await this.#seeEntry(place, entry, 'closed folder');
  }

  async #seeEntry(place: Place, entry: Entry, kind: PlantedKind): Promise<void> {
    await this.#see(pathOf(place, entry), kind, treeMark(place, entry));
  }

  async #see(path: string, kind: PlantedKind, mark: Promise<string>): Promise<void> {
    const seen = await mark;
    if (this.#sightings.size < mostSightings) this.#sightings.set(path, { kind, mark: seen });
    else this.#cut ??= `more than ${mostSightings} things were found`;
  }

  async #list(place: Place): Promise<readonly Entry[]> {
    if (this.#isOver()) return [];
    const left = this.#request.limits.entries - this.#entries;
    const entries = await listed(place, left + 1);
    this.#entries += entries.length + 1;
    return entries;
  }

  #isOver(): boolean {
    const { entries, timeMs } = this.#request.limits;
    if (this.#entries > entries) this.#cut ??= `more than ${entries} files and folders`;
    else if (performance.now() > this.#endMs)
      this.#cut ??= `it took more than ${Math.round(timeMs / 1000)} s`;
    return this.#cut !== undefined;
  }
}

const pathOf = ({ path }: Place, { name }: Entry): string => (path === '' ? name : `${path}/${name}`);

/** The kernel's name of an open folder, where there is one: it stays the same folder whatever happens to its path. */
const placeOf = ({ fd }: FileHandle, path: string): string => (isLinux ? `/proc/self/fd/${fd}` : path);
const childOf = ({ at }: Place, name: string): Buffer => Buffer.from(`${at}/${name}`, 'latin1');

/** At most so many of them: a folder may hold millions. */
async function listed(place: Place, most: number): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  try {
    const folder = await opendir(Buffer.from(place.at, 'latin1'), {
      // The name's bytes, whatever they are; the type leaves this encoding out.
      encoding: 'latin1' as BufferEncoding,
      bufferSize: listedAtOnce,
    });
    for await (const entry of folder) {
      entries.push({ name: entry.name, folded: foldedOf(entry.name), kind: kindOf(entry) });
      if (entries.length >= most) break;
    }
  } catch {
    // Not readable, or no longer there: then its change is seen next time.
  }
  return entries;
}

function kindOf(entry: Dirent): Kind {
  if (entry.isDirectory()) return 'directory';
  if (entry.isFile()) return 'file';
  return entry.isSymbolicLink() ? 'link' : 'other';
}

const isPlain = /^[\w\-@+]+(?:\.[\w\-@+]+)*$/;

/** Most names need no more than this. */
const foldedOf = (latin1: string): string =>
  isPlain.test(latin1) ? latin1.toLowerCase() : foldedName(Buffer.from(latin1, 'latin1').toString('utf8'));

/** The time of change is the kernel's: no program chooses it. */
async function factsAt(path: Buffer): Promise<string> {
  return await lstat(path, { bigint: true }).then(
    ({ ino, size, ctimeNs, mode }) => `${ino}:${size}:${ctimeNs}:${mode}`,
    () => '-',
  );
}

async function gitMark(place: Place): Promise<string> {
  const hash = createHash('sha256');
  for (const name of obeyed) hash.update(`${name} ${await factsAt(childOf(place, name))}\n`);
  const hooks = await open(childOf(place, 'hooks'), folderFlags).catch(() => undefined);
  if (hooks !== undefined) {
    try {
      const inside: Place = { ...place, handle: hooks, at: placeOf(hooks, `${place.at}/hooks`) };
      for (const { name } of await listed(inside, mostMarked))
        hash.update(`${name} ${await factsAt(childOf(inside, name))}\n`);
    } finally {
      await hooks.close();
    }
  }
  return hash.digest('base64url').slice(0, 22);
}

/** Of a file its facts; of a folder those of all that is in it, as far as it is not huge. */
async function treeMark(place: Place, entry: Entry): Promise<string> {
  const hash = createHash('sha256');
  let left = mostMarked;
  const add = async (folder: Place, { name, kind }: Entry): Promise<void> => {
    hash.update(`${name} ${await factsAt(childOf(folder, name))}\n`);
    if (kind !== 'directory' || --left <= 0) return;
    const handle = await open(childOf(folder, name), folderFlags).catch(() => undefined);
    if (handle === undefined) return;
    try {
      const inside: Place = { ...folder, handle, at: placeOf(handle, `${folder.at}/${name}`) };
      for (const child of await listed(inside, left)) if (--left > 0) await add(inside, child);
    } finally {
      await handle.close();
    }
  };
  await add(place, entry);
  return hash.digest('base64url').slice(0, 22);
}

const ownerReads = 0o400;
const ownerEnters = 0o100;

/** The daemon may be root, who may do everything: what counts is whether the owner may. */
async function mayEnter(place: Place, { name }: Entry): Promise<boolean> {
  const facts = await lstat(childOf(place, name)).catch(() => undefined);
  return facts !== undefined && (facts.mode & ownerEnters) !== 0 && (facts.mode & ownerReads) !== 0;
}

async function isEmpty(place: Place, { name, kind }: Entry): Promise<boolean> {
  if (kind !== 'directory') return false;
  const handle = await open(childOf(place, name), folderFlags).catch(() => undefined);
  if (handle === undefined) return false;
  try {
    return (await listed({ ...place, handle, at: placeOf(handle, `${place.at}/${name}`) }, 1)).length === 0;
  } finally {
    await handle.close();
  }
}

/** As git judges it: a head that names a reference or a commit, and folders that may be entered. */
async function isUsable(place: Place): Promise<boolean> {
  const entries = new Map((await listed(place, mostMarked)).map(({ name, kind }) => [name, kind]));
  if (entries.get('objects') !== 'directory' || entries.get('refs') !== 'directory') return false;
  for (const [name, needed] of [
    ['objects', ownerEnters],
    ['refs', ownerEnters],
    ['HEAD', ownerReads],
  ] as const) {
    const facts = await lstat(childOf(place, name)).catch(() => undefined);
    if (facts === undefined || (facts.mode & needed) === 0) return false;
  }
  const head = await readAt(childOf(place, 'HEAD'), headBytes);
  return head !== undefined && /^(?:ref:[ \t\n\r]*refs\/|[0-9a-f]{40})/.test(head);
}

/** The beginning of a file, as latin1. */
async function readAt(path: Buffer, most: number): Promise<string | undefined> {
  const handle = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch(() => undefined);
  if (handle === undefined) return undefined;
  try {
    const facts = await handle.stat();
    if (!facts.isFile()) return undefined;
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(Math.min(most, facts.size)));
    return buffer.toString('latin1', 0, bytesRead);
  } finally {
    await handle.close();
  }
}
