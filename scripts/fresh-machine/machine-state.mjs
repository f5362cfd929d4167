/** What a fresh machine could change on the machine that runs it. Compared before and after, it must be the same. */

import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { groupsOf } from './cgroups.mjs';

const settings = [
  'net/ipv4/ip_forward',
  'net/ipv4/conf/all/forwarding',
  'net/bridge/bridge-nf-call-iptables',
];

function firewall(program) {
  const { status, stdout } = spawnSync(program, { encoding: 'utf8' });
  if (status !== 0) return [];
  // Comments hold the time, and brackets the number of packets.
  return stdout
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.replace(/\[\d+:\d+\]/g, ''));
}

function mountPoints() {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '');
}

/** Networks of containers, and of engines that tests start, come and go with other work on this machine. */
const isOfOtherWork = /^(veth|br-|sally[0-9a-f]{8}$)/;

/** `id` names the machine's groups, and `workFolder` holds everything it has on disk. */
export function readMachineState(id, workFolder) {
  return {
    settings: settings
      .filter((name) => existsSync(`/proc/sys/${name}`))
      .map((name) => `${name}=${readFileSync(`/proc/sys/${name}`, 'utf8').trim()}`),
    firewall: [...firewall('iptables-save'), ...firewall('ip6tables-save')],
    interfaces: Object.keys(networkInterfaces()).filter((name) => !isOfOtherWork.test(name)),
    mounts: mountPoints().filter((point) => point.startsWith(workFolder)),
    cgroups: groupsOf(id),
    devices: readdirSync('/dev'),
  };
}

/** A line for each thing that came or went. */
export function differences(before, after) {
  return Object.keys(before).flatMap((kind) => [
    ...after[kind].filter((item) => !before[kind].includes(item)).map((item) => `${kind}: + ${item}`),
    ...before[kind].filter((item) => !after[kind].includes(item)).map((item) => `${kind}: - ${item}`),
  ]);
}
