/** The states of a sandbox and of an exec, as everybody sees them. What is legal in which is a table in `sandboxes/lifecycle.ts`. */

export const sandboxStates = [
  'PENDING',
  'READY',
  'STOPPING',
  'STOPPED',
  'PAUSED',
  'FAILED',
  'DELETING',
  'DELETED',
] as const;
export type SandboxState = (typeof sandboxStates)[number];

/** `lost`: it ran when its sandbox ended, so nobody knows how it would have ended. `refused`: it could not be started. */
export const execStates = ['running', 'exited', 'refused', 'lost'] as const;
export type ExecState = (typeof execStates)[number];

/** `FAILED`: it did not become healthy, or it ended later. It is not started again before its sandbox is. */
export const serviceStates = ['PENDING', 'READY', 'FAILED', 'STOPPED'] as const;
export type ServiceState = (typeof serviceStates)[number];
