/** What may be done with a sandbox in which state, as a table. Nobody asks for a state; whoever acts asks this table. */

import { SallyportError } from '../protocol/errors.ts';
import type { SandboxState } from '../protocol/states.ts';

export type Action = 'use' | 'start' | 'stop' | 'pause' | 'resume' | 'remove';

/** `wait`: something is under way; look again when it is over. `nothing`: it is so already. */
export type Verdict = 'do' | 'nothing' | 'wait' | 'refuse';

type Row = Readonly<Record<SandboxState, Verdict>>;

export const table: Readonly<Record<Action, Row>> = {
  use: row('wait', 'do', 'wait', 'refuse', 'refuse', 'refuse', 'refuse', 'refuse'),
  start: row('wait', 'nothing', 'wait', 'do', 'refuse', 'do', 'refuse', 'refuse'),
  stop: row('wait', 'do', 'wait', 'nothing', 'do', 'nothing', 'refuse', 'refuse'),
  pause: row('wait', 'do', 'wait', 'refuse', 'nothing', 'refuse', 'refuse', 'refuse'),
  resume: row('wait', 'nothing', 'wait', 'refuse', 'do', 'refuse', 'refuse', 'refuse'),
  remove: row('do', 'do', 'wait', 'do', 'do', 'do', 'do', 'nothing'),
};

/** In the order of a sandbox's life. */
function row(
  PENDING: Verdict,
  READY: Verdict,
  STOPPING: Verdict,
  STOPPED: Verdict,
  PAUSED: Verdict,
  FAILED: Verdict,
  DELETING: Verdict,
  DELETED: Verdict,
): Row {
  return { PENDING, READY, STOPPING, STOPPED, PAUSED, FAILED, DELETING, DELETED };
}

export const verdict = (action: Action, state: SandboxState): Verdict => table[action][state];

const verbs: Readonly<Record<Action, string>> = {
  use: 'used',
  start: 'started',
  stop: 'stopped',
  pause: 'paused',
  resume: 'resumed',
  remove: 'removed',
};

const waysOut: Partial<Readonly<Record<SandboxState, (name: string) => string>>> = {
  STOPPED: (name) => `Start it first: \`sally start ${name}\`.`,
  PAUSED: (name) => `Let it go on first: \`sally resume ${name}\`.`,
  FAILED: (name) => `\`sally inspect ${name}\` says why it failed; \`sally start ${name}\` tries again.`,
};

export function refusal(
  action: Action,
  { name, state, reason }: { readonly name: string; readonly state: SandboxState; readonly reason?: string },
): SallyportError {
  if (state === 'DELETING' || state === 'DELETED') {
    return new SallyportError('sandbox_not_found', `sandbox ${name} was removed`, {
      details: { sandbox: name },
    });
  }
  const why = reason === undefined ? '' : ` (${reason})`;
  const advice = waysOut[state]?.(name);
  return new SallyportError(
    'sandbox_state',
    `sandbox ${name} is ${state}${why} and cannot be ${verbs[action]}`,
    {
      details: { sandbox: name, state },
      ...(advice === undefined ? {} : { advice }),
    },
  );
}
