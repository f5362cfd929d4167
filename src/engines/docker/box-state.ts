/** The engines' words for what a container does, in ours. Pure. */

import { SallyportError } from '../../protocol/errors.ts';
import { label } from '../../protocol/labels.ts';
import type { BoxState, BoxStatus, KnownBox } from '../../sandboxes/ports.ts';
import type { ContainerState } from './containers/inspect.ts';
import type { ListedContainer } from './containers/list.ts';

/** Docker's and Podman's. One that goes away, or of which the engine has lost track, does nothing any more. */
const statuses = new Map<string, BoxStatus>(
  Object.entries({
    configured: 'created',
    created: 'created',
    initialized: 'created',
    running: 'running',
    restarting: 'running',
    stopping: 'running',
    paused: 'paused',
    exited: 'stopped',
    stopped: 'stopped',
    removing: 'stopped',
    dead: 'stopped',
    unknown: 'stopped',
  } as const),
);

export function boxStatus(id: string, word: string): BoxStatus {
  const status = statuses.get(word);
  if (status !== undefined) return status;
  throw new SallyportError('engine_protocol', `container ${id} has a state that no engine has: ${word}`, {
    details: { container: id },
  });
}

export function boxState(container: ContainerState): BoxState {
  const { id, exitCode, oomKilled } = container;
  const status = boxStatus(id, container.status);
  return { running: status === 'running' || status === 'paused', exitCode, oomKilled, status };
}

export function knownBox(container: ListedContainer): KnownBox {
  const { id, labels, state, createdSeconds } = container;
  return { id, labels, status: boxStatus(id, state), createdMs: createdSeconds * 1000 };
}

/** What every box of this owner carries, and nothing else does. */
export function boxLabels(owner: string): readonly [string, string, string] {
  return [`${label.owned}=true`, `${label.kind}=sandbox`, `${label.owner}=${owner}`];
}
