/** The whole environment of a command: the image's, then the sandbox's, then the call's. Nothing of the host's (C5). */

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
    ...(wantsAgent(record.plan) ? { SSH_AUTH_SOCK: agentSocketInside } : {}),
    ...record.spec.envs,
    ...call,
  };
}
