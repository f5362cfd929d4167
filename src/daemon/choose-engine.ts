/**
 * Which engine this daemon works with: the one that the environment names, else a container engine. An engine that isolates less
 * is never a substitute: the daemon reports it, and its client decides (`sdk/client.ts`).
 */

import type { EngineName } from '../protocol/engine-environment.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import { noEngine } from '../protocol/no-engine.ts';
import type { EngineParts } from './engine-parts.ts';

export interface EngineWays {
  readonly docker: () => Promise<EngineParts>;
  readonly bubblewrap: () => Promise<EngineParts>;
}

export async function chooseEngine(wanted: EngineName, ways: EngineWays): Promise<EngineParts> {
  if (wanted === 'bubblewrap') return await ways.bubblewrap();
  if (wanted === 'docker') return await ways.docker();
  let missing: unknown;
  try {
    return await ways.docker();
  } catch (error) {
    if (!isSallyportError(error) || !noEngine.has(error.code)) throw error;
    missing = error;
  }
  const weaker = await ways.bubblewrap().catch(() => undefined);
  if (weaker === undefined) throw missing;
  const facts = await weaker.engine.facts();
  throw new SallyportError(
    'engine_not_chosen',
    `no container engine answers; bubblewrap ${facts.version} is here, and isolates less: ${(facts.weaker ?? []).join('; ')}`,
    { details: { engine: 'bubblewrap', weaker: [...(facts.weaker ?? [])] }, cause: missing },
  );
}
