/** What a sandbox must look like from inside, row by row: what is expected, and how to find it in what the kernel shows. Pure. */

import { wantedServices } from '../policy/services.ts';
import type { SandboxRecord } from './records.ts';
import { agentSocketInside, wantsAgent } from './socket-forwards.ts';

/** Path to content. What could not be opened is not in it. */
export type Shown = ReadonlyMap<string, string>;

export interface Expectation {
  readonly name: string;
  readonly expected: string;
  /** Undefined where the runtime does not show it. */
  readonly find: (shown: Shown) => string | undefined;
  /** Where the kernel may round; else both must be equal. */
  readonly fits?: (found: string) => boolean;
}

export function expectations(record: SandboxRecord, porterMount: string): readonly Expectation[] {
  const { user, limits, profile, mounts, unprotected = [], sharedTools = [] } = record.plan;
  const strict = profile === 'strict';
  const onBubblewrap = record.isolation.engine === 'bubblewrap';
  const noCapability = '0000000000000000';
  return [
    { name: 'user', expected: numbers(user.uid), find: status('Uid', spaced) },
    { name: 'group', expected: numbers(user.gid), find: status('Gid', spaced) },
    {
      name: 'other groups',
      expected: '',
      find: status('Groups', (text) => otherGroups(text, user.gid)),
      // Nobody but root can leave a group. In a user namespace that does not know them they have no number of their own.
      ...(onBubblewrap ? { fits: (found: string) => found.split(' ').every(isUnmapped) } : {}),
    },
    ...['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'].map((name) => ({
      name: `capabilities ${name.slice(3).toLowerCase()}`,
      expected: noCapability,
      find: status(name),
    })),
    { name: 'no new privileges', expected: '1', find: status('NoNewPrivs') },
    { name: 'seccomp', expected: '2', find: seccomp },
    {
      name: 'memory',
      expected: String(limits.memoryBytes),
      find: unlessUnlimited(memory, isBeyondAll),
      fits: (found) => isRounded(Number(found), limits.memoryBytes, largestPageBytes),
    },
    { name: 'processes', expected: String(limits.pids), find: unlessUnlimited(pids, isBeyondAll) },
    {
      name: 'cpus',
      expected: String(limits.cpus),
      find: unlessUnlimited(cpus, (found) => !(found > 0)),
      fits: (found) => isRounded(Number(found), limits.cpus, quotaStep),
    },
    { name: 'core files', expected: '0', find: limit('Max core file size') },
    {
      name: 'interfaces',
      expected: wantedServices(record.spec).length === 0 ? 'lo' : 'eth0 lo',
      find: interfaces,
    },
    { name: 'root', expected: strict || onBubblewrap ? 'ro' : 'rw', find: (shown) => mountMode(shown, '/') },
    { name: `mount ${porterMount}`, expected: 'ro', find: (shown) => mountMode(shown, porterMount) },
    { name: '/tmp', expected: strict ? 'tmpfs noexec' : 'tmpfs exec', find: tmp },
    ...statedRow('dangerously unprotected', unprotected),
    ...statedRow('tools in mode shared', sharedTools),
    ...mounts.map(({ target, writable }) => ({
      name: `${!writable && isInWritable(target, mounts) ? 'protected' : 'mount'} ${target}`,
      expected: writable ? 'rw' : 'ro',
      find: (shown: Shown) => mountMode(shown, target),
    })),
    ...(record.plan.egress === true && record.cleanUp === undefined ? gateRows : []),
    ...(wantsAgent(record.plan)
      ? [{ name: `SSH agent at ${agentSocketInside}`, expected: 'listening', find: agentListener }]
      : []),
  ];
}

/** Of the sandbox's own loopback: 127.0.0.1, as the kernel writes it, with a port in hexadecimal. */
const gateRows: readonly Expectation[] = [
  { name: 'gate at 127.0.0.1:3128', expected: 'listening', find: listens('/proc/net/tcp', '0100007F:0C38 ') },
  { name: 'names at 127.0.0.1:53', expected: 'listening', find: listens('/proc/net/udp', '0100007F:0035 ') },
  { name: 'resolver', expected: '127.0.0.1', find: resolver },
];

function listens(file: string, place: string) {
  return (shown: Shown): string | undefined => {
    const text = shown.get(file);
    return text === undefined ? undefined : text.includes(` ${place}`) ? 'listening' : 'nothing';
  };
}

/** An engine that has its own idea of this file (Docker with services) cuts off names at most, and nothing else. */
function resolver(shown: Shown): string | undefined {
  const servers = [...(shown.get('/etc/resolv.conf') ?? '').matchAll(/^nameserver\s+(\S+)/gm)];
  return servers.length === 1 && servers[0]?.[1] === '127.0.0.1' ? '127.0.0.1' : undefined;
}

/** Only what is held lies in another mount: targets of a spec inside each other are refused. */
const isInWritable = (target: string, mounts: SandboxRecord['plan']['mounts']): boolean =>
  mounts.some((mount) => mount.writable && target.startsWith(`${mount.target}/`));

/** Not to be found inside: what is not protected cannot be told from any other file. It is said all the same. */
function statedRow(name: string, what: readonly string[]): readonly Expectation[] {
  if (what.length === 0) return [];
  const list = what.join(' ');
  return [{ name, expected: list, find: () => list }];
}

/** Limits of memory are whole pages. */
const largestPageBytes = 65_536;
/** Limits of processors are whole microseconds in a period of 100 ms. */
const quotaStep = 1e-5;

/** Down, and by less than a step: never up. The smallest part is for sums of fractions. */
const isRounded = (found: number, expected: number, step: number): boolean =>
  found <= expected + step * 1e-6 && expected - found < step;

/** Real, effective, saved and of the file system: all four the same. */
const numbers = (id: number): string => `${id} ${id} ${id} ${id}`;
const spaced = (text: string): string => text.trim().split(/\s+/).join(' ');

/** The own group may be among them; anything else was not asked for. */
function otherGroups(text: string, gid: number): string {
  return text
    .trim()
    .split(/\s+/)
    .filter((group) => group !== '' && group !== String(gid))
    .join(' ');
}

const isUnmapped = (group: string): boolean => group === '' || group === '65534';

function status(field: string, read: (text: string) => string = (text) => text.trim()) {
  return (shown: Shown): string | undefined => {
    const line = new RegExp(`^${field}:(.*)$`, 'm').exec(shown.get('/proc/self/status') ?? '')?.[1];
    return line === undefined ? undefined : read(line);
  };
}

/**
 * gVisor, which is a kernel of its own. It filters and limits from outside, and shows inside as if nobody did. Linux shows
 * this line in every process since 4.10, and nobody inside can take it away.
 */
export const isOtherKernel = (shown: Shown): boolean =>
  shown.has('/proc/self/status') && status('NoNewPrivs')(shown) === undefined;

function seccomp(shown: Shown): string | undefined {
  const found = status('Seccomp')(shown);
  return found === '0' && isOtherKernel(shown) ? undefined : found;
}

/** What another kernel calls unlimited says nothing of the limits around it. */
function unlessUnlimited(find: (shown: Shown) => string | undefined, unlimited: (found: number) => boolean) {
  return (shown: Shown): string | undefined => {
    const found = find(shown);
    return found !== undefined && unlimited(Number(found)) && isOtherKernel(shown) ? undefined : found;
  };
}

/** `max`, or more than any machine has. */
const isBeyondAll = (found: number): boolean => !(found < Number.MAX_SAFE_INTEGER);

function memory(shown: Shown): string | undefined {
  const text =
    shown.get('/sys/fs/cgroup/memory/memory.limit_in_bytes') ?? shown.get('/sys/fs/cgroup/memory.max');
  return text?.trim();
}

function pids(shown: Shown): string | undefined {
  return (shown.get('/sys/fs/cgroup/pids/pids.max') ?? shown.get('/sys/fs/cgroup/pids.max'))?.trim();
}

function cpus(shown: Shown): string | undefined {
  const v2 = shown.get('/sys/fs/cgroup/cpu.max')?.trim().split(' ');
  const quota = shown.get('/sys/fs/cgroup/cpu/cpu.cfs_quota_us')?.trim() ?? v2?.[0];
  const period = shown.get('/sys/fs/cgroup/cpu/cpu.cfs_period_us')?.trim() ?? v2?.[1];
  return quota === undefined || period === undefined ? undefined : String(Number(quota) / Number(period));
}

function limit(name: string) {
  return (shown: Shown): string | undefined =>
    new RegExp(`^${name}\\s+(\\S+)`, 'm').exec(shown.get('/proc/self/limits') ?? '')?.[1];
}

function interfaces(shown: Shown): string | undefined {
  const text = shown.get('/proc/net/dev');
  if (text === undefined) return undefined;
  const names = [...text.matchAll(/^\s*([^\s:|]+):/gm)].map((match) => match[1]);
  return names.sort().join(' ');
}

/** A name of a socket stands at the end of its line. */
function agentListener(shown: Shown): string | undefined {
  const lines = shown.get('/proc/net/unix')?.split('\n');
  if (lines === undefined) return undefined;
  return lines.some((line) => line.endsWith(` ${agentSocketInside}`)) ? 'listening' : 'nothing';
}

interface MountLine {
  readonly target: string;
  readonly options: readonly string[];
  readonly type: string;
}

/** The last one mounted at a place is the one that is seen. */
function mountAt(shown: Shown, target: string): MountLine | undefined {
  const lines = (shown.get('/proc/self/mountinfo') ?? '').split('\n').map((line): MountLine => {
    const [before = '', after = ''] = line.split(' - ');
    const fields = before.split(' ');
    return {
      target: unescaped(fields[4] ?? ''),
      options: (fields[5] ?? '').split(','),
      type: after.split(' ')[0] ?? '',
    };
  });
  return lines.findLast((line) => line.target === asShown(target));
}

/** The kernel writes blanks, line breaks and backslashes of a path as octal numbers. */
const unescaped = (path: string): string =>
  path.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));

/** What is shown is bytes, one in each character. */
export const asShown = (path: string): string => Buffer.from(path, 'utf8').toString('latin1');

/**
 * gVisor by default puts a layer over the root that lives as long as the container runs, not as long as it is there.
 * Linux has an overlay there, too, which stays.
 */
export function forgetsRootAtStop(shown: Shown): boolean {
  const root = mountAt(shown, '/');
  return isOtherKernel(shown) && root?.type === 'overlay' && !root.options.includes('ro');
}

/** Of every container; the last three are the engine's own name for its machine. */
const commonHosts = /^(localhost|ip6-|host\.(containers|docker)\.internal$|gateway\.docker\.internal$)/;

/** Names in the hosts file that are neither the box's nor common: an engine put its machine's own file there (Podman does). */
export function hostsOfMachine(shown: Shown, own: readonly string[]): readonly string[] {
  const lines = (shown.get('/etc/hosts') ?? '').split('\n').map((line) => line.replace(/#.*/, '').trim());
  const names = lines.flatMap((line) => line.split(/\s+/).slice(1));
  return [...new Set(names)].filter((name) => !commonHosts.test(name) && !own.includes(name));
}

function mountMode(shown: Shown, target: string): string | undefined {
  if (!shown.has('/proc/self/mountinfo')) return undefined;
  const mount = mountAt(shown, target);
  if (mount === undefined) return 'nothing';
  return mount.options.includes('ro') ? 'ro' : 'rw';
}

function tmp(shown: Shown): string | undefined {
  const mount = mountAt(shown, '/tmp');
  if (mount === undefined) return shown.has('/proc/self/mountinfo') ? 'nothing' : undefined;
  return `${mount.type} ${mount.options.includes('noexec') ? 'noexec' : 'exec'}`;
}
