import { describe, expect, it } from 'vitest';
import { parseSpec } from '../protocol/parse-spec.ts';
import { type BoxPlan, planBox } from './box-plan.ts';
import { expectedRuntime, leaveRuntimeOpen, planOn, runtimeChoice } from './strongest-runtime.ts';

const docker = (runtimes: readonly string[], defaultRuntime = 'runc') => ({
  name: 'docker',
  runtimes,
  defaultRuntime,
});
const strongest = parseSpec({ runtime: 'strongest' });
const service = { name: 'db', image: 'postgres' };

describe('[R11] the candidates of `runtime: strongest`', () => {
  it.each([
    [
      'kata, krun, gVisor, runc',
      ['runc', 'runsc', 'krun', 'kata'],
      'runc',
      ['kata', 'krun', 'runsc', 'runc'],
    ],
    ['gVisor and runc', ['io.containerd.runc.v2', 'runc', 'runsc'], 'runc', ['runsc', 'runc']],
    ['runc alone', ['runc', 'io.containerd.runc.v2'], 'runc', ['runc']],
    ['bubblewrap', ['bwrap'], 'bwrap', ['bwrap']],
    [
      'all that Podman names',
      ['crun', 'crun-vm', 'crun-wasm', 'kata', 'krun', 'ocijail', 'runc', 'runj', 'runsc', 'youki'],
      'crun',
      ['kata', 'krun', 'runsc', 'crun'],
    ],
    [
      'several of a level: the default first',
      ['kata-fc', 'kata-qemu', 'runc'],
      'kata-qemu',
      ['kata-qemu', 'kata-fc', 'runc'],
    ],
    ['a default that isolates more', ['runc', 'runsc'], 'runsc', ['runsc', 'runc']],
    ['a container runtime that is the default', ['nvidia', 'runc', 'runsc'], 'nvidia', ['runsc', 'nvidia']],
    ['crun where there is no runc', ['crun', 'runsc'], 'runsc', ['runsc', 'crun']],
    ['no container runtime at all', ['runsc'], 'runsc', ['runsc']],
    ['a default that is not in the list', [], 'crun', ['crun']],
  ] as const)('are in order: %s', (_, runtimes, defaultRuntime, candidates) => {
    const choice = runtimeChoice(strongest, docker(runtimes, defaultRuntime));
    expect(choice).toEqual({ candidates, weakest: candidates.at(-1), notes: [] });
  });

  it('are nobody’s question where the spec names a runtime, or none', () => {
    expect(runtimeChoice(parseSpec({}), docker(['runc', 'runsc']))).toBeUndefined();
    expect(runtimeChoice(parseSpec({ runtime: 'runsc' }), docker(['runc', 'runsc']))).toBeUndefined();
  });

  it('are refused as an unknown runtime is where there are none', () => {
    expect(() => runtimeChoice(strongest, docker([], ''))).toThrow(
      expect.objectContaining({ code: 'runtime_missing', details: { runtime: 'strongest', available: [] } }),
    );
  });

  it.each(['required_services', 'optional_services'])('can do what the spec asks for: %s', (field) => {
    const spec = parseSpec({ runtime: 'strongest', [field]: [service] });
    const choice = runtimeChoice(spec, docker(['kata', 'runc', 'runsc']));
    expect(choice).toMatchObject({ candidates: ['kata', 'runc'], weakest: 'runc' });
    expect(choice?.notes).toEqual([
      {
        code: 'runtime_passed_over',
        message: 'runtime runsc (gvisor) is not used: it cannot give the sandbox its services',
      },
    ]);
  });

  it('are refused as an explicit runsc is where only gVisor is left for services', () => {
    const spec = parseSpec({ runtime: 'strongest', required_services: [service] });
    expect(() => runtimeChoice(spec, docker(['runsc'], 'runsc'))).toThrow(
      expect.objectContaining({ code: 'services_unsupported', message: expect.stringContaining('runsc') }),
    );
  });
});

describe('[R11] a plan whose runtime is left open', () => {
  const host = { uid: 1000, gid: 1000, platform: 'linux' as const };
  const engine = { rootless: false, ...docker(['runc', 'runsc', 'kata']) };
  const spec = parseSpec({ runtime: 'strongest', user: '1000:1000' });
  const open = (): BoxPlan => {
    const choice = runtimeChoice(spec, engine);
    if (choice === undefined) throw new Error('the runtime is not left open');
    const places = { platform: host.platform, homes: [], stateDirs: [], engineSockets: [], programs: [] };
    const facts = { host, engine, freeUid: 64_000, places, mounts: [] };
    return leaveRuntimeOpen(planBox({ ...spec, runtime: choice.weakest }, facts), choice);
  };

  it('names its candidates and no runtime, and has what the weakest of them needs', () => {
    expect(open()).toMatchObject({
      runtimes: ['kata', 'runsc', 'runc'],
      sharesQuotas: true,
      lender: { uid: 64_000 },
    });
    expect(open()).not.toHaveProperty('runtime');
  });

  it('has the runtime that was chosen, and on the host’s kernel the quotas of another user', () => {
    const { runtimes: _, ...rest } = open();
    expect(planOn(open(), 'runc')).toEqual({ ...rest, runtime: 'runc' });
  });

  it.each(['runsc', 'kata'])('needs no quotas of another user on %s', (runtime) => {
    const { runtimes: _, lender: _lender, sharesQuotas: _shares, ...rest } = open();
    expect(planOn(open(), runtime)).toEqual({ ...rest, runtime });
  });
});

describe('[R11] the runtime that is expected', () => {
  const candidates = ['kata', 'runsc', 'runc'];
  it.each([
    [
      {},
      'kata',
      'the runtime would be kata (vm) if it passes a check when the sandbox is made, else runsc (gvisor), then runc (container)',
    ],
    [
      { kata: 'fails' },
      'runsc',
      'the runtime would be runsc (gvisor) if it passes a check when the sandbox is made, else runc (container)',
    ],
    [{ kata: 'fails', runsc: 'works' }, 'runsc', 'the runtime would be runsc (gvisor)'],
    [{ kata: 'fails', runsc: 'fails' }, 'runc', 'the runtime would be runc (container)'],
  ] as const)('is known as far as %j is known', (known, runtime, note) => {
    const knowledge = new Map<string, 'works' | 'fails'>(Object.entries(known));
    expect(expectedRuntime(candidates, (name) => knowledge.get(name) ?? 'unknown')).toEqual({
      runtime,
      note,
    });
  });

  it('is the only one there is', () => {
    expect(expectedRuntime(['runc'], () => 'unknown')).toEqual({
      runtime: 'runc',
      note: 'the runtime would be runc (container)',
    });
  });
});
