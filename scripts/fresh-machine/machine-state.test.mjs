import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { commandExists, requirement } from '../../test/support/requires.ts';
import { asRoot, when } from '../../test/support/selection.ts';
import { makeGroups, removeGroups } from './cgroups.mjs';
import { differences, readMachineState } from './machine-state.mjs';

const module = fileURLToPath(new URL('machine-state.mjs', import.meta.url));
const machine = { id: 'no-such-machine', folder: '/no/such/folder', namespaces: [] };

describe('[N1] what a fresh machine leaves', () => {
  it('is each thing that came or went, with its kind', () => {
    const before = { mounts: ['/a'], devices: ['null', 'zero'], settings: ['ip_forward=0'] };
    expect(differences(before, before)).toEqual([]);
    expect(
      differences(before, { mounts: ['/a', '/b'], devices: ['null'], settings: ['ip_forward=1'] }),
    ).toEqual(['mounts: + /b', 'devices: - zero', 'settings: + ip_forward=1', 'settings: - ip_forward=0']);
  });

  when(asRoot).it('is read from this machine', () => {
    const state = readMachineState(machine);
    expect(state.devices).toContain('null');
    expect(state.links).toContain('lo');
    expect(state.mounts).toContain('/proc');
    expect([state.namespaces, state.cgroups]).toEqual([[], []]);
  });
});

const hasTools = requirement('ip and iptables-save', commandExists('ip') && commandExists('iptables-save'));

when(asRoot, hasTools).describe('[N1] a thing that a fresh machine leaves', () => {
  let folder;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'of-the-machine-state-test-'));
  });

  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  /** Differences around a shell script, in namespaces of networks and mounts that end with it. */
  function leftBy(script, { state = {}, environment = {} } = {}) {
    const program = `
      import { spawnSync } from 'node:child_process';
      import { differences, readMachineState } from ${JSON.stringify(module)};
      const machine = { ...${JSON.stringify(machine)}, ...${JSON.stringify(state)} };
      const before = readMachineState(machine);
      const { status, stderr } = spawnSync('sh', ['-ec', ${JSON.stringify(script)}], { encoding: 'utf8' });
      if (status !== 0) throw new Error(stderr);
      console.log(JSON.stringify(differences(before, readMachineState(machine))));
    `;
    const words = ['--net', '--mount', process.execPath, '--input-type=module', '--eval', program];
    const { status, stdout, stderr } = spawnSync('unshare', words, {
      encoding: 'utf8',
      env: { ...process.env, ...environment },
    });
    return status === 0 ? JSON.parse(stdout) : stderr;
  }

  it('is reported when it is a link without an address, a mount elsewhere or a rule', () => {
    expect(leftBy('true')).toEqual([]);
    expect(leftBy('ip link add left0 type bridge')).toEqual(['links: + left0']);
    expect(leftBy(`mount -t tmpfs left ${folder}`)).toEqual([`mounts: + ${folder}`]);
    const left = leftBy('iptables -A INPUT -s 192.0.2.1 -j DROP');
    expect(left).toContain('firewall: + -A INPUT -s 192.0.2.1/32 -j DROP');
    const ofContainers = leftBy('iptables -A INPUT -i br-0123456789ab -j DROP');
    expect(ofContainers.filter((line) => line.includes('br-'))).toEqual([]);
  });

  it('is no mount of an engine or a test that works beside it', () => {
    const other = join(folder, 'sally-test');
    mkdirSync(other);
    const mount = `mount -t tmpfs left ${other}`;
    expect(leftBy(mount)).toEqual([`mounts: + ${other}`]);
    expect(leftBy(mount, { environment: { TMPDIR: folder } })).toEqual([]);
    // In its own folder nothing is of others.
    const own = { environment: { TMPDIR: folder }, state: { folder } };
    expect(leftBy(mount, own)).toEqual([`mounts: + ${other}`]);
  });

  it('is no mount that the kernel makes when somebody looks there', () => {
    const debug = '/sys/kernel/debug';
    const mount = `mount -t tmpfs left ${debug}; mkdir ${debug}/tracing; mount -t tmpfs left ${debug}/tracing`;
    expect(leftBy(mount)).toEqual([`mounts: + ${debug}`]);
  });

  it('is reported when it is a network with a name', () => {
    const named = 'mount -t tmpfs left /run; mkdir /run/netns; touch /run/netns/left';
    expect(leftBy(named)).toContain('namespaces: + left');
  });

  it('is reported when a process is still in a namespace of the machine', () => {
    const namespaces = [readlinkSync('/proc/self/ns/pid')];
    expect(readMachineState({ ...machine, namespaces }).namespaces).toEqual(namespaces);
    expect(readMachineState({ ...machine, namespaces: ['pid:[1]'] }).namespaces).toEqual([]);
  });

  it('is reported when it is a control group', () => {
    const id = `left-${process.pid}`;
    makeGroups(id);
    try {
      expect(readMachineState({ ...machine, id }).cgroups.length).toBeGreaterThan(0);
    } finally {
      removeGroups(id);
    }
    expect(readMachineState({ ...machine, id }).cgroups).toEqual([]);
  });

  it('is an error when the rules of the firewall cannot be read', () => {
    const failing = join(folder, 'iptables-save');
    writeFileSync(failing, '#!/bin/sh\necho cannot be read >&2\nexit 1\n');
    chmodSync(failing, 0o755);
    const environment = { PATH: `${folder}:${process.env.PATH}` };
    expect(leftBy('true', { environment })).toContain('iptables-save: cannot be read');
  });
});
