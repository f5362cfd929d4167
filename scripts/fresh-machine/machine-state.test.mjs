import { describe, expect, it } from 'vitest';
import { differences, readMachineState } from './machine-state.mjs';

describe('[N1] what a fresh machine leaves', () => {
  it('is each thing that came or went, with its kind', () => {
    const before = { mounts: ['/a'], devices: ['null', 'zero'], settings: ['ip_forward=0'] };
    expect(differences(before, before)).toEqual([]);
    expect(
      differences(before, { mounts: ['/a', '/b'], devices: ['null'], settings: ['ip_forward=1'] }),
    ).toEqual(['mounts: + /b', 'devices: - zero', 'settings: + ip_forward=1', 'settings: - ip_forward=0']);
  });

  it('is read from this machine', () => {
    const state = readMachineState('no-such-machine', '/no/such/folder');
    expect(state.devices).toContain('null');
    expect(state.interfaces).toContain('lo');
    expect([state.mounts, state.cgroups]).toEqual([[], []]);
  });
});
