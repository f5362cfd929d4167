/** What the environment of the calling program says: where the daemon is, and which engine it should have. */

import { type StateLocation, stateLocation } from '../lib/state-location.ts';
import { hashEngineEnvironment } from '../protocol/engine-environment.ts';

export interface ClientEnvironment extends StateLocation {
  readonly engineEnvironment: string;
  /** What a daemon that is started here inherits. */
  readonly childVariables: Readonly<Record<string, string | undefined>>;
}

export function readClientEnvironment(env: NodeJS.ProcessEnv = process.env): ClientEnvironment {
  return {
    ...stateLocation(env),
    engineEnvironment: hashEngineEnvironment(env),
    childVariables: { ...env },
  };
}
