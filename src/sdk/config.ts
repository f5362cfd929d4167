/** Settings of the calling program's environment: where its state is, and which engine it names. */

import { type StateLocation, stateLocation } from '../lib/state-location.ts';
import { type EngineChoice, type EngineName, engineChoice } from '../protocol/engine-environment.ts';

export interface ClientEnvironment extends StateLocation {
  /** The engine of a call that names none, or `named` by a flag or a spec. */
  readonly choose: (named?: EngineName) => EngineChoice;
  /** Inherited by a daemon that is started here. */
  readonly childVariables: Readonly<Record<string, string | undefined>>;
}

export function readClientEnvironment(env: NodeJS.ProcessEnv = process.env): ClientEnvironment {
  const childVariables = { ...env };
  return {
    ...stateLocation(env),
    choose: (named) => engineChoice(childVariables, named),
    childVariables,
  };
}
