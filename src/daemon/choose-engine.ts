/**
 * Which engine this daemon works with. What the environment says is done, or nothing is. Without a word of it a container engine
 * is looked for, and one that isolates less is taken only if its user has chosen it: a daemon has nobody to ask.
 */

import type { EngineName } from '../protocol/engine-environment.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import type { EngineParts } from './engine-parts.ts';

export interface EngineWays {
  readonly docker: () => Promise<EngineParts>;
  readonly bubblewrap: () => Promise<EngineParts>;
}

export async function chooseEngine(
  wanted: EngineName,
  remembered: string | undefined,
  ways: EngineWays,
): Promise<EngineParts> {
  if (wanted === 'bubblewrap') return await ways.bubblewrap();
  if (wanted === 'docker') return await ways.docker();
  let missing: unknown;
  try {
    return await ways.docker();
  } catch (error) {
    if (!isSallyportError(error, 'engine_unreachable')) throw error;
    missing = error;
  }
  if (remembered === 'bubblewrap') return await ways.bubblewrap();
  const weaker = await ways.bubblewrap().catch(() => undefined);
  if (weaker === undefined) throw missing;
  const facts = await weaker.engine.facts();
  throw new SallyportError(
    'engine_not_chosen',
    `no container engine answers; bubblewrap ${facts.version} is here, and isolates less: ${(facts.weaker ?? []).join('; ')}`,
    { details: { engine: 'bubblewrap', weaker: [...(facts.weaker ?? [])] }, cause: missing },
  );
}
