/** A sandbox as the gate sees it. */

import type { GateClient } from './ports.ts';
import type { RecordKeeper } from './record-keeper.ts';
import type { SandboxWorld } from './world.ts';

export function gateClient(world: SandboxWorld, keeper: RecordKeeper): GateClient {
  const { id, name } = keeper.record;
  return {
    id,
    name,
    egress: () => keeper.record.egress ?? keeper.record.spec.egress ?? {},
    names: {
      load: () => keeper.record.egressNames ?? [],
      save: (names) => keeper.note({ egressNames: names }),
    },
    log: world.store.egressLog(id),
    tell: (draft) => {
      world.store.events.append({ ...draft, sandbox_id: id });
    },
    report: (what, error) => world.report(`${what} (${name})`, error),
  };
}
