import { describe, expect, it } from 'vitest';
import { isolationLevel } from './isolation-level.ts';

describe('[R11] the isolation level of a runtime', () => {
  it.each([
    ['bwrap', 'bubblewrap'],
    ['runc', 'container'],
    ['crun', 'container'],
    ['crun-vm', 'container'],
    ['io.containerd.runc.v2', 'container'],
    ['nvidia', 'container'],
    ['not-a-name-that-says-anything', 'container'],
    ['', 'container'],
    ['runsc', 'gvisor'],
    ['runsc-kvm', 'gvisor'],
    ['io.containerd.runsc.v1', 'gvisor'],
    ['kata', 'vm'],
    ['kata-runtime', 'vm'],
    ['kata-qemu', 'vm'],
    ['io.containerd.kata.v2', 'vm'],
    ['krun', 'vm'],
  ])('of %j is %s', (runtime, level) => {
    expect(isolationLevel(runtime)).toBe(level);
  });
});
