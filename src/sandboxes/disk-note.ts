/** The event about a container without an exact disk limit. */

import type { DiskNote } from './ports.ts';
import type { SandboxRecord } from './records.ts';
import type { SandboxWorld } from './world.ts';

/** The engine refused an exact limit, so this container is watched. */
export function diskNote(
  { store }: Pick<SandboxWorld, 'store'>,
  { id }: Pick<SandboxRecord, 'id'>,
): DiskNote {
  return (reason) => {
    const message = `the engine refused an exact disk limit, so the daemon watches this one: ${reason}`;
    store.events.append({ type: 'sandbox.note', sandbox_id: id, code: 'disk_limit_watched', message });
  };
}
