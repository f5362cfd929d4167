/**
 * Which files and folders of the host a sandbox may never see (O4). Pure: it judges real paths, so links must have been
 * followed before. Both directions count: a folder that contains a forbidden place is as bad as one inside it.
 *
 * It cannot know what is bind-mounted or hard-linked into an innocent folder.
 */

import { SallyportError } from '../protocol/errors.ts';
import { guardCopiesName, guardCopyName } from '../protocol/guard-copy-place.ts';
import { executedInHome, toolFor } from './builtin-tools.ts';
import {
  credentialsInHome,
  engineSocketName,
  knownEngineSockets,
  macTemporary,
  programTrees,
  sharedFolders,
  sharedSockets,
  startupInHome,
  systemTrees,
} from './host-places.ts';
import { isWithin } from './paths.ts';

/** What is forbidden on this machine beyond the known places. All real paths. */
export interface HostPlaces {
  readonly platform: string;
  /** Home folders that are not to be recognised by their place: at least that of the user. */
  readonly homes: readonly string[];
  /** Where Sallyport keeps its state and its approvals. */
  readonly stateDirs: readonly string[];
  /** Sockets of engines: the one in use, DOCKER_HOST's, the private engine's. */
  readonly engineSockets: readonly string[];
  /** What runs this: Sallyport's package and Node's executable. */
  readonly programs: readonly string[];
}

export interface SourceRefusal {
  readonly rule:
    | 'root'
    | 'system'
    | 'engine-socket'
    | 'state'
    | 'home'
    | 'credentials'
    | 'startup'
    | 'programs'
    | 'shared';
  /** The forbidden place that was met. */
  readonly place: string;
  readonly because: string;
  readonly wayOut: string;
}

export function requireAllowedSource(
  field: string,
  source: { readonly given: string; readonly real: string; readonly writable: boolean },
  places: HostPlaces,
): void {
  const refusal = forbiddenSource(source.real, source.writable, places);
  if (refusal === undefined) return;
  const path = source.given === source.real ? source.real : `${source.given} (which is ${source.real})`;
  throw new SallyportError(
    'refused_by_policy',
    `${field}: ${path} may not be given to a sandbox: ${refusal.because}`,
    {
      details: { field, path: source.real, rule: refusal.rule, place: refusal.place },
      advice: refusal.wayOut,
    },
  );
}

/** Undefined: it may be given. */
export function forbiddenSource(
  realPath: string,
  writable: boolean,
  places: HostPlaces,
): SourceRefusal | undefined {
  // macOS keeps case but does not tell names apart by it.
  const fold = (text: string): string => (places.platform === 'darwin' ? text.toLowerCase() : text);
  const look: Look = {
    path: realPath,
    home: homeOf(realPath, places, fold),
    inside: (tree) => isWithin(fold(realPath), fold(tree)),
    contains: (place) => isWithin(fold(place), fold(realPath)),
  };
  // What the path itself is comes before what it contains, so that /home is refused for being /home.
  return (
    rootRule(look) ??
    socketRule(look, places) ??
    homeRule(look, places) ??
    stateRule(look, writable, places) ??
    systemRule(look, places) ??
    homeContentRule(look, writable) ??
    sharedRule(look) ??
    containedRule(look, places) ??
    programRule(look, writable)
  );
}

interface Look {
  readonly path: string;
  /** The home that the path is strictly below of. */
  readonly home: string | undefined;
  readonly inside: (tree: string) => boolean;
  readonly contains: (place: string) => boolean;
}

const projectWayOut = 'Give a project folder below a home, or copy what is needed into a folder of its own.';

function rootRule({ path }: Look): SourceRefusal | undefined {
  if (path !== '/') return undefined;
  return { rule: 'root', place: '/', because: 'it is the whole machine', wayOut: projectWayOut };
}

function socketRule({ path, inside }: Look, places: HostPlaces): SourceRefusal | undefined {
  const name = path.slice(path.lastIndexOf('/') + 1);
  const known = [...places.engineSockets, ...knownEngineSockets].find(inside);
  if (known === undefined && !engineSocketName.test(name)) return undefined;
  return socketRefusal(known ?? path, 'it is the socket of a container engine');
}

function socketRefusal(place: string, what: string): SourceRefusal {
  return {
    rule: 'engine-socket',
    place,
    because: `${what}, and whoever holds that holds the machine`,
    wayOut: 'There is no way to use the engine from inside; let the host make what the sandbox needs.',
  };
}

function homeRule({ path }: Look, places: HostPlaces): SourceRefusal | undefined {
  if (!places.homes.includes(path) && !isHomeByPlace(path, places.platform)) return undefined;
  return homeRefusal(path, 'it is a home folder, with every key and login in it');
}

function homeRefusal(place: string, because: string): SourceRefusal {
  return { rule: 'home', place, because, wayOut: 'Give a project folder below the home.' };
}

function stateRule({ inside, path }: Look, writable: boolean, places: HostPlaces): SourceRefusal | undefined {
  const met = places.stateDirs.find(inside);
  if (met !== undefined && !writable && isGuardCopy(path, met)) return undefined;
  return met === undefined ? undefined : stateRefusal(met);
}

/** It is state for as long as a guarded command takes, and was made to be mounted. */
function isGuardCopy(path: string, stateDir: string): boolean {
  const all = `${stateDir}/${guardCopiesName}/`;
  const [owner, folder] = path.startsWith(all) ? path.slice(all.length).split('/') : [];
  return owner !== undefined && owner !== '' && folder === guardCopyName;
}

function stateRefusal(place: string): SourceRefusal {
  return {
    rule: 'state',
    place,
    because: `Sallyport keeps its own state in ${place}`,
    wayOut: 'Give a folder beside it, or move the state with SALLYPORT_STATE_DIR.',
  };
}

/** Innocent by itself, but something forbidden is below it. */
function containedRule({ contains }: Look, places: HostPlaces): SourceRefusal | undefined {
  const home = places.homes.find(contains);
  if (home !== undefined) return homeRefusal(home, `it contains the home folder ${home}`);
  const state = places.stateDirs.find(contains);
  if (state !== undefined) return stateRefusal(state);
  const socket = places.engineSockets.find(contains);
  return socket === undefined
    ? undefined
    : socketRefusal(socket, `it contains an engine's socket, ${socket}`);
}

function homeContentRule({ home, inside, contains }: Look, writable: boolean): SourceRefusal | undefined {
  if (home === undefined) return undefined;
  const meets = (entry: string): boolean => inside(`${home}/${entry}`) || contains(`${home}/${entry}`);
  const secret = credentialsInHome.find(meets);
  if (secret !== undefined) {
    const place = `${home}/${secret}`;
    return {
      rule: 'credentials',
      place,
      because: `${place} holds credentials or private data`,
      wayOut: credentialsWayOut(secret),
    };
  }
  const startup = writable ? [...startupInHome, ...executedInHome].find(meets) : undefined;
  if (startup === undefined) return undefined;
  const place = `${home}/${startup}`;
  const tool = toolFor(startup);
  return {
    rule: 'startup',
    place,
    because: `the host runs what is in ${place}, so writing there is leaving the sandbox`,
    wayOut: `Mount it read-only (without \`writable\`), or work on a copy.${tool === undefined ? '' : ` The built-in tool ${tool} protects what the host runs (\`builtin_tools: [${tool}]\`).`}`,
  };
}

function credentialsWayOut(secret: string): string {
  const tool = toolFor(secret);
  const byTool =
    tool === undefined ? '' : `The built-in tool ${tool} is there for it (\`builtin_tools: [${tool}]\`). `;
  return `${byTool}Leave it out; pass a single value with envs if the sandbox must have it.`;
}

function sharedRule({ path, contains }: Look): SourceRefusal | undefined {
  const met = sharedSockets.test(path) ? path : sharedFolders.find((folder) => contains(folder));
  if (met === undefined) return undefined;
  return {
    rule: 'shared',
    place: met,
    because: `files and sockets of every program on this machine are in ${met}`,
    wayOut: 'Give a folder of its own below it.',
  };
}

function systemRule({ path, home, inside, contains }: Look, places: HostPlaces): SourceRefusal | undefined {
  if (places.platform === 'darwin' && macTemporary.test(path)) return undefined;
  const met = systemTrees(places.platform).find(
    (tree) => contains(tree.path) || (inside(tree.path) && !(tree.hasHomes && home !== undefined)),
  );
  if (met === undefined) return undefined;
  const because = inside(met.path)
    ? `${met.path} belongs to the system`
    : `it contains ${met.path}, which belongs to the system`;
  return { rule: 'system', place: met.path, because, wayOut: projectWayOut };
}

function programRule({ inside, contains }: Look, writable: boolean): SourceRefusal | undefined {
  const met = writable ? programTrees.find((tree) => inside(tree) || contains(tree)) : undefined;
  if (met === undefined) return undefined;
  return {
    rule: 'programs',
    place: met,
    because: `the host runs programs from ${met}`,
    wayOut: 'Mount it read-only (without `writable`).',
  };
}

/** The home that `path` is strictly below of: by its place (/home/x, /Users/x, /root), or because it was named. */
function homeOf(path: string, places: HostPlaces, fold: (text: string) => string): string | undefined {
  const byPlace = /^\/root(?=\/)|^\/home\/[^/]+(?=\/)|^\/Users\/[^/]+(?=\/)/.exec(path)?.[0];
  const named = places.homes
    // A service user's home may be /, /dev/null or /var/run, which makes none of them a place for projects.
    .filter((home) => home.split('/').length > 2 || home === '/root')
    .filter((home) => path !== home && isWithin(fold(path), fold(home)))
    .sort((a, b) => b.length - a.length)[0];
  return named ?? byPlace;
}

function isHomeByPlace(path: string, platform: string): boolean {
  const pattern =
    platform === 'darwin' ? /^(\/private\/var\/root|\/Users\/[^/]+)$/i : /^(\/root|\/home\/[^/]+)$/;
  return pattern.test(path);
}
