/**
 * A sandbox of another engine in this engine's folder, from the time when one daemon had the sandboxes of all engines. This
 * daemon cannot inspect such a sandbox, and does not take its absence for its end: the record is shown and left as it is.
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
      advice: `It is kept as it was. Use the version of Sallyport that made it, with SALLYPORT_ENGINE=${family}, to bring its files back or to remove it.`,
    },
  );
}
