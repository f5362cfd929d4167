/**
 * The network of a fresh machine: slirp4netns, a network stack in user space, connects the machine's own network
 * namespace. It needs no interface, no firewall rule and no forwarding on the machine that runs it, and leaves with its
 * process. Inside only the package mirrors have a route; every other address is unreachable.
 */

import { spawn, spawnSync } from 'node:child_process';
import { lookup } from 'node:dns/promises';
import { existsSync } from 'node:fs';

/** slirp4netns answers DNS here and passes packets on there. */
export const nameserver = '10.0.2.3';
export const router = '10.0.2.2';

/** The address of a machine that has to set it itself. */
export const guestAddress = '10.0.2.100/24';

/** Where this machine gets its packages from, by its own settings. */
export async function mirrorAddresses() {
  const apt = spawnSync('apt-get', ['indextargets', '--format', '$(SITE)'], { encoding: 'utf8' }).stdout;
  const npm = spawnSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).stdout;
  const hosts = [...apt.split('\n'), npm.trim()].flatMap((site) =>
    URL.canParse(site) ? [new URL(site).hostname] : [],
  );
  const found = await Promise.allSettled(
    [...new Set(hosts)].map((host) => lookup(host, { all: true, family: 4 })),
  );
  const addresses = [...new Set(found.flatMap(({ value = [] }) => value.map(({ address }) => address)))];
  if (addresses.length === 0) throw new Error('no package mirror of this machine has an address');
  return addresses;
}

/** Connects the network namespace of that process; returns the process that must be ended with the machine. */
export async function connectNetwork(pid) {
  const slirp = spawn(
    'setpriv',
    [
      '--pdeathsig=KILL',
      'slirp4netns',
      '--configure',
      '--mtu=65520',
      '--disable-host-loopback',
      '--ready-fd=3',
      String(pid),
      'tap0',
    ],
    { stdio: ['ignore', 'ignore', 'ignore', 'pipe'] },
  );
  await new Promise((resolve, reject) => {
    slirp.stdio[3].once('data', resolve);
    slirp.once('error', reject);
    slirp.once('exit', (code) => reject(new Error(`slirp4netns ended with ${code} before it was ready`)));
  });
  const addresses = await mirrorAddresses();
  const inside = (...args) => {
    const { status, stderr } = spawnSync('nsenter', [`--net=/proc/${pid}/ns/net`, 'ip', ...args], {
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(`ip ${args.join(' ')}: ${stderr}`);
  };
  inside('route', 'delete', 'default');
  for (const address of addresses) inside('route', 'add', `${address}/32`, 'via', router);
  return slirp;
}

/**
 * Serves the network card of a kernel that runs as a program, on a socket that it connects to; returns the process that must be
 * ended with the machine.
 */
export async function serveNetworkCard(socket) {
  const slirp = spawn(
    'setpriv',
    ['--pdeathsig=KILL', 'slirp4netns', '--target-type=bess', '--disable-host-loopback', socket],
    { stdio: 'ignore' },
  );
  let failure;
  slirp.once('error', (error) => {
    failure = error;
  });
  slirp.once('exit', (code) => {
    failure ??= new Error(`slirp4netns ended with ${code} before it was ready`);
  });
  // It says that it is ready when the kernel has connected; the socket is all there is to see before.
  while (!existsSync(socket)) {
    if (failure !== undefined) throw failure;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return slirp;
}
