/**
 * A sandbox that the other engine holds. One daemon works with one engine, so a sandbox of the other is nowhere to be found by
 * this one; that is no sign that it is gone. Its record is shown and left as it is, until a daemon of its engine is back.
 */

import { familyOf } from '../policy/engine-support.ts';
import { SallyportError } from '../protocol/errors.ts';
import type { EngineFamily } from './ports.ts';
import type { SandboxRecord } from './records.ts';

type Held = Pick<SandboxRecord, 'name' | 'state' | 'isolation'>;

export const isElsewhere = ({ isolation }: Held, here: EngineFamily): boolean =>
  familyOf(isolation.engine) !== here;

/** Shown as the reason for its state, which nobody can look at. */
export const whereItIs = ({ isolation, state }: Held, here: EngineFamily): string =>
  `it belongs to ${isolation.engine}, and this daemon works with ${here}; it was ${state} when it was last seen`;

export function elsewhere({ name, isolation }: Held, here: EngineFamily): SallyportError {
  const family = familyOf(isolation.engine);
  return new SallyportError(
    'daemon_engine_differs',
    `sandbox ${name} belongs to ${isolation.engine}, and this daemon works with ${here}`,
    {
      details: { sandbox: name, engine: isolation.engine, daemon_engine: here },
      advice: `It is kept as it was. Stop this daemon (\`sally daemon stop\`) and call again with SALLYPORT_ENGINE=${family}.`,
    },
  );
}
