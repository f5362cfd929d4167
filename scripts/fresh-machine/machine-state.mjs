/** What a fresh machine could change on the machine that runs it. Compared before and after, it must be the same. */

import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { groupsOf } from './cgroups.mjs';

const settings = [
  'net/ipv4/ip_forward',
  'net/ipv4/conf/all/forwarding',
  'net/bridge/bridge-nf-call-iptables',
];

function firewall(program) {
  const { error, status, stdout, stderr } = spawnSync(program, { encoding: 'utf8' });
  if (error?.code === 'ENOENT') return [];
  if (status !== 0) throw new Error(`${program}: ${error?.message ?? stderr.trim()}`);
  // Comments hold the time, and brackets the number of packets.
  return stdout
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#') && !isRuleOfOtherWork.test(line))
    .map((line) => line.replace(/\[\d+:\d+\]/g, ''));
}

/** Also those without an address. */
function links() {
  return readFileSync('/proc/net/dev', 'utf8')
    .split('\n')
    .flatMap((line) => /^\s*([^:|]+):/.exec(line)?.[1] ?? []);
}

/** Source and mount point of each mount; the source of a namespace is its id. */
function mounts() {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split(' '))
    .map(([, , , source, point]) => ({ source, point }));
}

/** Namespaces of one process: `net:[4026531840]`. */
function namespacesOf(pid) {
  const folder = `/proc/${pid}/ns`;
  try {
    return readdirSync(folder).map((name) => readlinkSync(join(folder, name)));
  } catch {
    return [];
  }
}

/** Those that a process is in, or that are mounted. */
function namespacesInUse() {
  const ofProcesses = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap(namespacesOf);
  return new Set([...ofProcesses, ...mounts().map(({ source }) => source)]);
}

/** Networks of containers, and of engines that tests start, come and go with other work on this machine. */
const isLinkOfOtherWork = /^(veth|br-|sally[0-9a-f]{8}$)/;
const isRuleOfOtherWork = / -[io] br-[0-9a-f]{12}\b/;
const isNetworkOfOtherWork = /^(netns|cni)-/;

/** So do mounts of engines, of sessions of users, of tests, of systems that are made from packages, and those that the kernel makes when somebody looks. */
function isMountOfOtherWork(point) {
  const byLooking = /^\/(sys\/kernel\/debug\/tracing|proc\/sys\/fs\/binfmt_misc)$/;
  const ofEngines = /^\/(run|var\/lib)\/(docker|containerd|containers|credentials|sallyport|user)(\/|$)/;
  const ofPackedSystem = /^\/(dev\/shm|tmp|var\/tmp)\/mmdebstrap\./;
  return (
    byLooking.test(point) ||
    ofEngines.test(point) ||
    ofPackedSystem.test(point) ||
    point.startsWith(join(tmpdir(), 'sally'))
  );
}

function namedNetworks() {
  return existsSync('/run/netns') ? readdirSync('/run/netns') : [];
}

/**
 * `id` names the machine's groups, `folder` holds everything it has on disk, and `namespaces` are ids of its
 * own.
 */
export function readMachineState({ id, folder, namespaces }) {
  const inUse = namespaces.length === 0 ? new Set() : namespacesInUse();
  return {
    settings: settings
      .filter((name) => existsSync(`/proc/sys/${name}`))
      .map((name) => `${name}=${readFileSync(`/proc/sys/${name}`, 'utf8').trim()}`),
    firewall: [...firewall('iptables-save'), ...firewall('ip6tables-save')],
    links: links().filter((name) => !isLinkOfOtherWork.test(name)),
    mounts: mounts()
      .map(({ point }) => point)
      .filter((point) => point.startsWith(folder) || !isMountOfOtherWork(point)),
    namespaces: [
      ...namespaces.filter((name) => inUse.has(name)),
      ...namedNetworks().filter((name) => !isNetworkOfOtherWork.test(name)),
    ],
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
