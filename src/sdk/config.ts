/** Settings of the calling program's environment: where its state is, and which engine it names. */

import { currentContext } from '../lib/current-context.ts';
import { type StateLocation, stateLocation } from '../lib/state-location.ts';
import {
  type EngineChoice,
  type EngineName,
  engineChoice,
  withCurrentContext,
} from '../protocol/engine-environment.ts';

export interface ClientEnvironment extends StateLocation {
  /** The engine of a call that names none, or `named` by a flag or a spec. */
  readonly choose: (named?: EngineName) => EngineChoice;
  /** Inherited by a daemon that is started here. */
  readonly childVariables: Readonly<Record<string, string | undefined>>;
}

export function readClientEnvironment(env: NodeJS.ProcessEnv = process.env): ClientEnvironment {
  const childVariables = withCurrentContext({ ...env }, () => currentContext(env));
  return {
    ...stateLocation(env),
    choose: (named) => engineChoice(childVariables, named),
    childVariables,
  };
}
