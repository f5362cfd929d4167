import { describe, expect, it } from 'vitest';
import { type PlanFacts, planBox } from '../policy/box-plan.ts';
import { parseSpec } from '../protocol/parse-spec.ts';
import type { SpecInput } from '../protocol/spec.ts';
import { execEnvironment } from './exec-environment.ts';
import { serviceRequest } from './service-container.ts';

const facts: PlanFacts = {
  host: { uid: 1000, gid: 100, platform: 'linux' },
  engine: { name: 'docker', rootless: false, defaultRuntime: 'runc' },
  freeUid: 64007,
  places: { platform: 'linux', homes: ['/home/me'], stateDirs: [], engineSockets: [], programs: [] },
  mounts: [],
};

const recordOf = (input: SpecInput, imageEnv: Record<string, string> = {}) => {
  const spec = parseSpec(input);
  return { spec, imageEnv, plan: planBox(spec, facts) };
};

const hostNumbers = (environment: Readonly<Record<string, string>>): readonly (string | undefined)[] => [
  environment['HOST_UID'],
  environment['HOST_GID'],
];

describe('[A11] HOST_UID and HOST_GID of a command', () => {
  it('are the numbers of the user who runs the daemon, whoever the user inside is', () => {
    const record = recordOf({});
    expect(record.plan.user.uid).toBe(64007);
    expect(hostNumbers(execEnvironment(record, {}, false))).toEqual(['1000', '100']);
  });

  it('win over those of the image, and yield to the spec and then to the call', () => {
    const image = { HOST_UID: '1', HOST_GID: '1' };
    expect(hostNumbers(execEnvironment(recordOf({}, image), {}, false))).toEqual(['1000', '100']);
    const record = recordOf({ envs: { HOST_UID: '2', HOST_GID: '2' } }, image);
    expect(hostNumbers(execEnvironment(record, {}, false))).toEqual(['2', '2']);
    expect(hostNumbers(execEnvironment(record, { HOST_GID: '' }, false))).toEqual(['2', '']);
  });

  it('[C5] are not in the strict profile, unless the spec or the call names them', () => {
    const record = recordOf({ profile: 'strict' });
    expect(hostNumbers(execEnvironment(record, {}, false))).toEqual([undefined, undefined]);
    expect(hostNumbers(execEnvironment(record, { HOST_UID: '5' }, false))).toEqual(['5', undefined]);
  });
});

describe('[A11] HOST_UID and HOST_GID of a service', () => {
  const envOf = (envs?: Record<string, string>): Readonly<Record<string, string>> => {
    const service = { name: 'db', image: 'x', required: true, ...(envs === undefined ? {} : { envs }) };
    const made = { containerName: 'c', name: 'n', id: 'sb-1', plan: recordOf({}).plan };
    return serviceRequest(made, service, { image: 'x', capabilities: [], owner: 'me' }).env;
  };

  it('are those of a command, and yield to its own variables', () => {
    expect(envOf()).toEqual({ HOST_UID: '1000', HOST_GID: '100' });
    expect(envOf({ HOST_UID: '3', A: 'b' })).toEqual({ HOST_UID: '3', HOST_GID: '100', A: 'b' });
  });
});
