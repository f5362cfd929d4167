/**
 * The whole environment of a command: the image's, then the sandbox's, then the call's. No variable of the host's environment is in
 * it (C5); HOST_UID and HOST_GID are numbers of the daemon's own process.
 */

import type { BoxPlan } from '../policy/box-plan.ts';
import { clientEnvironment } from '../policy/egress/client-environment.ts';
import { userName } from '../policy/user-names.ts';
import type { SandboxRecord } from './records.ts';
import { agentSocketInside, wantsAgent } from './socket-forwards.ts';

const posixPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export function execEnvironment(
  record: Pick<SandboxRecord, 'imageEnv' | 'plan' | 'spec' | 'gateEnv'>,
  call: Readonly<Record<string, string>>,
  tty: boolean,
): Record<string, string> {
  return {
    PATH: posixPath,
    LANG: 'C.UTF-8',
    ...(tty ? { TERM: 'xterm-256color' } : {}),
    ...record.imageEnv,
    // An image knows nothing of this user.
    ...(record.plan.egress === true ? { ...clientEnvironment(), ...record.gateEnv } : {}),
    HOME: record.plan.user.home,
    USER: userName(record.plan.user.uid),
    ...hostUserEnvironment(record.plan),
    ...(wantsAgent(record.plan) ? { SSH_AUTH_SOCK: agentSocketInside } : {}),
    ...record.spec.envs,
    ...call,
  };
}

/** Whose files on the host a program inside works for (A11). The user inside often is another one. */
export function hostUserEnvironment({ hostUser }: Pick<BoxPlan, 'hostUser'>): Record<string, string> {
  if (hostUser === undefined) return {};
  return { HOST_UID: String(hostUser.uid), HOST_GID: String(hostUser.gid) };
}
