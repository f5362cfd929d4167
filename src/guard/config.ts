/** What the process environment says to the guard, read once at the edge. */

import { readConfigEnvironment } from '../config/config.ts';

export interface GuardEnvironment {
  readonly home: string;
  /** The user's own file, with the lists of the guard. */
  readonly userFile: string;
  readonly stateDir: string;
  /** What a command on the host is given a few of. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** The token of an approver who has no terminal. */
  readonly approverToken?: string;
}

export function readGuardEnvironment(env: NodeJS.ProcessEnv = process.env): GuardEnvironment {
  const { home, userFile, stateDir } = readConfigEnvironment(env);
  const approverToken = env['SALLYPORT_APPROVER_TOKEN'];
  return {
    home,
    userFile,
    stateDir,
    variables: { ...env },
    ...(approverToken === undefined || approverToken === '' ? {} : { approverToken }),
  };
}
