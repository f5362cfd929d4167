import { describe, expect, it } from 'vitest';
import { readEngineEnvironment } from '../engines/docker/config.ts';
import type { Attempt, Discovery, FoundEngine } from '../engines/docker/discover.ts';
import { EngineConnection } from '../engines/docker/wire/connection.ts';
import { openTransport } from '../engines/docker/wire/transport.ts';
import { silent } from '../lib/progress.ts';
import { type ErrorCode, SallyportError } from '../protocol/errors.ts';
import { readSetupEnvironment } from './config.ts';
import {
  type EnsureEngineRequest,
  ensureEngine,
  findOrStartEngine,
  type Machine,
  mayStartAnother,
} from './ensure-engine.ts';
import { bareDebian as debianRoot } from './host-facts.fixture.ts';
import type { HostFacts } from './host-facts.ts';
import type { InstallPlan } from './install-plan.ts';

function engineAt(path: string): FoundEngine {
  const endpoint = { kind: 'unix', path } as const;
  return { source: 'test', endpoint, connection: new EngineConnection(openTransport(endpoint), path) };
}

function failure(code: ErrorCode, exclusive = false): Attempt {
  return {
    source: 'a place',
    endpoint: 'x',
    outcome: 'failed',
    exclusive,
    error: new SallyportError(code, code),
  };
}

/** A machine that keeps a diary of what set-up does to it. */
class RecordedMachine implements Machine {
  readonly diary: string[] = [];
  #programs: HostFacts['programs'];
  #answering: FoundEngine | undefined;
  readonly #attempts: readonly Attempt[];

  constructor(start: { dockerd?: string; answering?: FoundEngine; attempts?: readonly Attempt[] }) {
    this.#programs = start.dockerd === undefined ? {} : { dockerd: start.dockerd };
    this.#answering = start.answering;
    this.#attempts = start.attempts ?? [failure('engine_unreachable')];
  }

  discover = async (): Promise<Discovery> =>
    this.#answering === undefined ? { attempts: this.#attempts } : { found: this.#answering, attempts: [] };

  facts = async (): Promise<HostFacts> => ({ ...debianRoot, programs: this.#programs });

  install = async (plan: InstallPlan): Promise<void> => {
    this.diary.push(`install ${plan.packages.join(' ')}`);
    this.#programs = { dockerd: '/usr/sbin/dockerd' };
  };

  startPrivate = async (dockerd: string): Promise<void> => {
    this.diary.push(`start ${dockerd}`);
    this.#answering = engineAt('/run/sallyport/engine/docker.sock');
  };
}

function request(machine: Machine, consent: EnsureEngineRequest['consent']): EnsureEngineRequest {
  return {
    environment: readEngineEnvironment({}),
    setup: readSetupEnvironment({}),
    progress: silent,
    consent,
    machine,
  };
}

const never = async (): Promise<boolean> => {
  throw new Error('nobody should be asked');
};

describe('findOrStartEngine', () => {
  it('[C3] uses what answers, else starts what is installed, telling each step, and installs nothing', async () => {
    const steps: string[] = [];
    const find = async (machine: Machine) =>
      await findOrStartEngine({
        ...request(machine, never),
        progress: ({ message }) => void steps.push(message),
      });
    const answering = new RecordedMachine({
      answering: engineAt('/var/run/docker.sock'),
      dockerd: 'dockerd',
    });
    expect((await find(answering)).endpoint).toMatchObject({ path: '/var/run/docker.sock' });
    expect([answering.diary, steps]).toEqual([[], []]);
    const installed = new RecordedMachine({ dockerd: '/opt/dockerd' });
    expect((await find(installed)).endpoint).toMatchObject({ path: '/run/sallyport/engine/docker.sock' });
    expect(installed.diary).toEqual(['start /opt/dockerd']);
    expect(steps).toEqual([
      'no engine answers; looking for one to start',
      'starting a private dockerd',
      'the engine answers (test)',
    ]);
    const bare = new RecordedMachine({});
    await expect(find(bare)).rejects.toMatchObject({ code: 'engine_unreachable' });
    expect(bare.diary).toEqual([]);
  });

  it('[C3] notices an engine that appears after it found none', async () => {
    let answering: FoundEngine | undefined;
    const machine = Object.assign(new RecordedMachine({}), {
      discover: async () =>
        answering === undefined
          ? { attempts: [failure('engine_unreachable')] }
          : { found: answering, attempts: [] },
    });
    await expect(findOrStartEngine(request(machine, never))).rejects.toMatchObject({
      code: 'engine_unreachable',
    });
    answering = engineAt('/var/run/docker.sock');
    expect(await findOrStartEngine(request(machine, never))).toBe(answering);
  });

  it('[G3] starts none beside one that was chosen or is broken', async () => {
    const machine = new RecordedMachine({
      dockerd: 'dockerd',
      attempts: [failure('engine_unreachable', true)],
    });
    await expect(findOrStartEngine(request(machine, never))).rejects.toMatchObject({
      code: 'engine_unreachable',
    });
    expect(machine.diary).toEqual([]);
  });
});

describe('ensureEngine', () => {
  it('[C3] uses an engine that answers, and starts and installs nothing', async () => {
    const machine = new RecordedMachine({ answering: engineAt('/var/run/docker.sock'), dockerd: 'dockerd' });
    const ready = await ensureEngine(request(machine, never));
    expect(ready).toMatchObject({ how: 'answered', privateEngine: false });
    expect(machine.diary).toEqual([]);
  });

  it('[C3] starts an installed dockerd without asking', async () => {
    const machine = new RecordedMachine({ dockerd: '/opt/dockerd' });
    expect(await ensureEngine(request(machine, never))).toMatchObject({
      how: 'started',
      privateEngine: true,
    });
    expect(machine.diary).toEqual(['start /opt/dockerd']);
  });

  it('installs only after consent to exactly that plan', async () => {
    const machine = new RecordedMachine({});
    const asked: InstallPlan[] = [];
    const ready = await ensureEngine(
      request(machine, async (plan) => {
        expect(machine.diary).toEqual([]);
        asked.push(plan);
        return true;
      }),
    );
    expect(asked.map(({ packages }) => packages)).toEqual([['docker.io', 'iptables', 'iproute2']]);
    expect(ready).toMatchObject({ how: 'installed', privateEngine: true });
    expect(machine.diary).toEqual(['install docker.io iptables iproute2', 'start /usr/sbin/dockerd']);
  });

  it('installs nothing when that is refused', async () => {
    const machine = new RecordedMachine({});
    await expect(ensureEngine(request(machine, async () => false))).rejects.toMatchObject({
      code: 'setup_refused',
    });
    expect(machine.diary).toEqual([]);
  });

  it.each<[string, Attempt]>([
    ['that the user chose and that does not answer', failure('engine_unreachable', true)],
    ['whose socket is closed to us', failure('engine_permission_denied')],
    ['that accepts and never answers', failure('engine_timeout')],
    ['that is too old', failure('engine_too_old')],
    ['whose address is wrong', failure('engine_endpoint_invalid', true)],
  ])('[G3] puts no second engine beside one %s', async (_name, attempt) => {
    const attempts = [failure('engine_unreachable'), attempt];
    const machine = new RecordedMachine({ dockerd: 'dockerd', attempts });
    await expect(ensureEngine(request(machine, never))).rejects.toMatchObject({ code: attempt.error?.code });
    expect(machine.diary).toEqual([]);
    expect(mayStartAnother(attempts)).toBe(false);
  });
});
