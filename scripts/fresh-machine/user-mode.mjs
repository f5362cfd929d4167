/**
 * A fresh machine with a kernel of its own: User Mode Linux, a kernel that is an ordinary program. The program runs in the same
 * namespaces as the other machines, in a folder that holds little else. The system of the machine is a disk image.
 */

import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { must } from '../steps.mjs';
import { guestAddress, mirrorAddresses, router, serveNetworkCard } from './network.mjs';
import { packedSystem, unpack } from './packed-system.mjs';
import { makeRootFolder } from './root-folder.mjs';

const guest = fileURLToPath(new URL('guest.sh', import.meta.url));
const firstProcess = '/sbin/fresh-machine';
const diskBytes = 32 * 1024 ** 3;

/** Arguments of the kernel. Paths are those of its folder; the id is there to tell its processes from others. */
export const kernelArguments = (id) => [
  `umid=${id}`,
  'mem=6G',
  // The fastest way to run processes. They can attack this kernel, and gain what root has on the other machines.
  'seccomp=on',
  'ubd0=/disk',
  'root=/dev/ubda',
  'rw',
  `init=${firstProcess}`,
  'vec0:transport=bess,dst=/network-card,depth=64,gro=1',
  // Debian's build has every security module, and engines would look for the profiles of AppArmor.
  'lsm=yama',
  'quiet',
  'con=null',
  'con0=null,fd:5',
  'ssl=null',
  'ssl0=null,fd:1',
];

/** As shell variables, for the script that the first process runs. */
export function environmentFile(variables) {
  return Object.entries(variables)
    .map(([name, value]) => `export ${name}='${value.replaceAll("'", String.raw`'\''`)}'\n`)
    .join('');
}

/** The commands that configure the network card: only the mirrors have a route. */
export function networkFile(addresses) {
  return [
    `ip address add ${guestAddress} dev vec0`,
    'ip link set vec0 up',
    ...addresses.map((address) => `ip route add ${address}/32 via ${router}`),
    '',
  ].join('\n');
}

/** Makes the kernel's folder and the disk. */
export async function makeUserModeMachine(distribution, { machine, cacheFolder }) {
  const { suite, packages } = distribution.kernel;
  await unpack(await packedSystem({ suite, variant: 'extract', packages }, cacheFolder), machine.root);
  const system = join(machine.folder, 'system');
  await makeRootFolder(distribution, { folder: system, cacheFolder });
  moveModules(machine.root, system);
  copyFileSync(guest, join(system, firstProcess));
  chmodSync(join(system, firstProcess), 0o755);
  leaveFirewallAlone(system);
  await makeDisk(join(machine.root, 'disk'), system);
  rmSync(system, { recursive: true });
}

/** Modules are looked for in the system, not beside the kernel. */
function moveModules(kernelFolder, system) {
  const from = join(kernelFolder, 'usr/lib/uml/modules');
  const to = join(system, 'usr/lib/modules');
  mkdirSync(to, { recursive: true });
  for (const version of readdirSync(from)) renameSync(join(from, version), join(to, version));
}

/** Debian builds this kernel without the tables that iptables needs, and an engine would not start. */
function leaveFirewallAlone(system) {
  const settings = JSON.stringify({ iptables: false, ip6tables: false });
  for (const folder of ['etc/docker', 'var/lib/sallyport/engine']) {
    mkdirSync(join(system, folder), { recursive: true });
    writeFileSync(join(system, folder, 'daemon.json'), settings);
  }
}

/** A file with holes; without a journal, because nothing of it is read after a crash. */
async function makeDisk(file, system) {
  writeFileSync(file, '');
  truncateSync(file, diskBytes);
  await must('mke2fs', ['-q', '-F', '-t', 'ext4', '-O', '^has_journal', '-d', system, file]);
}

/** Runs a shell script as root in the machine; resolves with its exit code. */
export async function runInUserMode(machine, script, { environment, onOutput }) {
  const shared = join(machine.root, 'shared');
  mkdirSync(shared);
  writeFileSync(join(shared, 'script'), script);
  writeFileSync(join(shared, 'environment'), environmentFile(environment));
  writeFileSync(join(shared, 'network'), networkFile(await mirrorAddresses()));
  const boot = `exec linux.uml ${kernelArguments(machine.id).join(' ')} 5>/kernel-messages`;
  const messages = join(machine.root, 'kernel-messages');
  const watch = stopAtPanic(machine, messages);
  const connect = () => serveNetworkCard(join(machine.root, 'network-card'));
  const ended = await machine
    .run(['/bin/sh', '-c', boot], { connect, onOutput })
    .finally(() => clearInterval(watch));
  const code = join(shared, 'exit-code');
  if (existsSync(code)) return Number(readFileSync(code, 'utf8'));
  if (!machine.isStopped || hasPanicked(messages)) showKernelMessages(messages);
  return ended || 1;
}

/** This kernel loops forever after a panic. */
function stopAtPanic(machine, messages) {
  return setInterval(() => {
    if (hasPanicked(messages)) void machine.stop();
  }, 1000);
}

function hasPanicked(messages) {
  return existsSync(messages) && readFileSync(messages, 'utf8').includes('Kernel panic');
}

function showKernelMessages(file) {
  console.error('sally: the machine ended before its script; the last messages of its kernel:');
  if (existsSync(file)) console.error(readFileSync(file, 'utf8').split('\n').slice(-40).join('\n'));
}
