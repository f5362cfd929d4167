/**
 * One build of a fingerprint at a time, among all processes that use an engine. A volume without content stands for the turn: an
 * engine gives its name to one, and tells everybody else whose it is.
 *
 * A holder that died is found out by its process where it was on this machine, and by time where it was on another. Who loses a
 * race for a dead one's turn builds beside the winner: the same image twice, and no harm done.
 */

import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { SallyportError } from '../../protocol/errors.ts';
import { ownedLabels } from '../../protocol/labels.ts';
import { createVolume } from './volumes/create.ts';
import { findVolume, type Volume } from './volumes/inspect.ts';
import { removeVolume } from './volumes/remove.ts';
import type { EngineConnection } from './wire/connection.ts';

const pollMs = 200;
/** Longer than a build takes. */
const foreignMs = 2 * 3600_000;
const holderLabel = 'dev.sallyport.holder';

export interface Holders {
  /** This process: its machine, a space, and what tells it from every other process of it. */
  readonly self: string;
  /** Undefined: it is of another machine. */
  isAlive(holder: string): boolean | undefined;
}

export function dockerBuildTurns(connection: EngineConnection, holders: Holders) {
  return {
    take: async (name: string, signal?: AbortSignal): Promise<() => Promise<void>> => {
      const holder = `${holders.self} ${randomBytes(8).toString('hex')}`;
      for (;;) {
        if (signal?.aborted === true)
          throw new SallyportError('cancelled', 'building the image was cancelled', { cause: signal.reason });
        const labels = ownedLabels('build-turn', { [holderLabel]: holder });
        await createVolume(connection, { name, labels });
        const volume = await findVolume(connection, name);
        const owner = volume?.labels[holderLabel];
        if (owner === holder) return () => removeVolume(connection, name);
        if (volume !== undefined && owner !== undefined && isDead(volume, owner, holders))
          await removeVolume(connection, name);
        else await delay(pollMs);
      }
    },
  };
}

function isDead({ createdAt }: Volume, holder: string, holders: Holders): boolean {
  const isAlive = holders.isAlive(holder.slice(0, holder.lastIndexOf(' ')));
  if (isAlive !== undefined) return !isAlive;
  const ageMs = Date.now() - Date.parse(createdAt);
  return Number.isFinite(ageMs) && ageMs > foreignMs;
}
