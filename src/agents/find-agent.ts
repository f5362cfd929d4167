/**
 * Finds the definition of an agent: the user's own, then that of the package.
 *
 * SECURITY: a folder that is worked on is never read. It came with a clone, or an agent changed it, and a definition chooses the
 * image, the hosts and the tokens of a sandbox.
 */

import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { closest } from '../lib/closest.ts';
import { packageInfo } from '../lib/package-root.ts';
import { SallyportError } from '../protocol/errors.ts';
import type { Agent, AgentDefinition } from './definition.ts';

export interface AgentPlaces {
  /** The user's folder of settings, in which `agents/<name>/agent.yaml` may be. */
  readonly userFolder: string;
  /** What is worked on; only for the message. */
  readonly workspace?: string;
}

const fileName = 'agent.yaml';
/** The package's own definitions as data, made from their files and checked there. */
const builtInFile = 'agents/built-in.json';

/** Verbs of `sally agent`. */
const reservedNames: readonly string[] = ['ls', 'rm', 'logs', 'help'];

/** It is part of the name of a sandbox, which has room for no more. */
const isAgentName = (name: string): boolean =>
  /^[a-z0-9]([a-z0-9_.-]{0,18}[a-z0-9])?$/.test(name) && !reservedNames.includes(name);

export async function findAgent(name: string, places: AgentPlaces): Promise<Agent> {
  if (!isAgentName(name)) throw unknownAgent(name, places);
  const own = join(places.userFolder, 'agents', name, fileName);
  if (isThere(own)) {
    const { readAgent } = await import('./read-agent.ts');
    const read = await readAgent(own);
    if (read !== undefined) return { ...read, name, file: own };
  }
  const builtIn = builtInAgents()[name];
  if (builtIn === undefined) throw unknownAgent(name, places);
  return { ...builtIn, name, file: join(packageInfo().root, 'agents', name, fileName) };
}

/** Names, sorted, each once. */
export function knownAgents({ userFolder }: AgentPlaces): readonly string[] {
  const folder = join(userFolder, 'agents');
  const own = entriesOf(folder).filter((name) => isAgentName(name) && isThere(join(folder, name, fileName)));
  return [...new Set([...own, ...Object.keys(builtInAgents())])].sort();
}

function builtInAgents(): Readonly<Record<string, AgentDefinition>> {
  const agents = JSON.parse(readFileSync(join(packageInfo().root, builtInFile), 'utf8')) as Record<
    string,
    AgentDefinition
  >;
  return Object.assign(Object.create(null) as Record<string, AgentDefinition>, agents);
}

function entriesOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

function unknownAgent(name: string, places: AgentPlaces): SallyportError {
  const known = knownAgents(places);
  const meant = closest(name, known);
  const { workspace, userFolder } = places;
  const here = workspace === undefined ? undefined : join(workspace, 'agents', name, fileName);
  const own = join(userFolder, 'agents', '<name>', fileName);
  const advice =
    here !== undefined && isAgentName(name) && isThere(here)
      ? `${here} is not read, because what is worked on may have been changed by an agent: read it, then copy its folder to ${join(userFolder, 'agents')}.`
      : `Use one of ${known.join(', ')}, or describe your own in ${own} (docs/agents.md).`;
  const shown = JSON.stringify(name.slice(0, 60));
  return new SallyportError(
    'agent_unknown',
    `there is no agent ${shown}${meant === undefined ? '' : `; did you mean ${meant}?`}`,
    { details: { agent: name.slice(0, 60), known: [...known] }, advice },
  );
}
