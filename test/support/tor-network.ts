/**
 * A Tor network of the test's own on loopback: a directory authority, which is a relay as well, two more relays, and one exit that resolves
 * names with a DNS server of the test and reaches this machine's loopback. Nothing of it knows of any other network.
 */

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { deferred } from '../../src/lib/deferred.ts';

const run = promisify(execFile);

export interface TorNetwork {
  /** Settings of a client that is to use this network. */
  readonly clientSettings: string;
  readonly stop: () => Promise<void>;
}

interface Authority {
  readonly name: string;
  readonly folder: string;
  readonly orPort: number;
  readonly dirPort: number;
  /** The line by which all others know it. */
  readonly line: string;
}

/** Besides the authority and the exit: a circuit has three different ones, and there is a choice. */
const middles = ['middle0', 'middle1'] as const;
/** Seconds; the least that Tor takes. */
const voting = [
  'TestingV3AuthInitialVotingInterval 5',
  'TestingV3AuthInitialVoteDelay 2',
  'TestingV3AuthInitialDistDelay 2',
  'V3AuthVotingInterval 10',
  'V3AuthVoteDelay 2',
  'V3AuthDistDelay 2',
];

/** `dnsServer`: whom the exit asks for names, as `address:port`. */
export async function startTorNetwork(dnsServer: string): Promise<TorNetwork> {
  const root = await mkdtemp(join(tmpdir(), 'sallyport-tor-'));
  const started: ChildProcess[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(started.map(end));
    await rm(root, { recursive: true, force: true });
  };
  try {
    const [orPort = 0, dirPort = 0, exitPort = 0, ...middlePorts] = await freePorts(3 + middles.length);
    // One: what several of them do not hear of each other in time is missing from a directory.
    const authority = await makeAuthority(root, 'authority', orPort, dirPort);
    const shared = [
      'TestingTorNetwork 1',
      authority.line,
      'TestingDirAuthVoteGuard *',
      'PathsNeededToBuildCircuits 0.25',
    ];
    const relays = [
      { name: 'exit', lines: await exitLines(root, exitPort, dnsServer) },
      ...middles.map((name, at) => ({ name, lines: relayLines(middlePorts[at] ?? 0) })),
    ];
    await Promise.all([
      startRelay(started, { ...authority, lines: [...shared, ...authorityLines(authority)] }),
      ...relays.map(({ name, lines }) =>
        startRelay(started, { name, folder: join(root, name), lines: [...shared, ...lines] }),
      ),
    ]);
    // Who asks for the directory from now on is told of all of them.
    await whenListed(authority, ['exit', ...middles]);
    const clientSettings = join(root, 'client.torrc');
    await writeFile(clientSettings, `${shared.join('\n')}\n`);
    return { clientSettings, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function authorityLines({ folder, orPort, dirPort }: Authority): readonly string[] {
  return [
    ...relayLines(orPort),
    `DirPort 127.0.0.1:${dirPort}`,
    `ControlPort unix:${controlOf(folder)}`,
    'AuthoritativeDirectory 1',
    'V3AuthoritativeDirectory 1',
    'ContactInfo nobody@example.invalid',
    'TestingMinExitFlagThreshold 0',
    ...voting,
  ];
}

/** Passes on what others send by it. */
function relayLines(orPort: number): readonly string[] {
  return [`ORPort 127.0.0.1:${orPort}`, 'ExitPolicy reject *:*'];
}

/** Names are asked for at `dnsServer`. */
async function exitLines(root: string, orPort: number, dnsServer: string): Promise<readonly string[]> {
  const resolvConf = join(root, 'resolv.conf');
  await writeFile(resolvConf, `nameserver ${dnsServer}\n`);
  return [
    `ORPort 127.0.0.1:${orPort}`,
    'ExitRelay 1',
    'ExitPolicyRejectPrivate 0',
    // Clients learn a summary of it, in which loopback does not count. The resolver of the test is what bounds it.
    'ExitPolicy accept *:*',
    `ServerDNSResolvConfFile ${resolvConf}`,
    'ServerDNSDetectHijacking 0',
    'ServerDNSSearchDomains 0',
    // It may learn of the others later than a client does, and would refuse what comes by a relay that it does not know.
    'RefuseUnknownExits 0',
  ];
}

async function makeAuthority(
  root: string,
  name: string,
  orPort: number,
  dirPort: number,
): Promise<Authority> {
  const folder = join(root, name);
  const keys = join(folder, 'keys');
  await mkdir(keys, { recursive: true, mode: 0o700 });
  const certificate = join(keys, 'authority_certificate');
  const made = run('tor-gencert', [
    '--create-identity-key',
    ...['--passphrase-fd', '0'],
    ...['-i', join(keys, 'authority_identity_key')],
    ...['-s', join(keys, 'authority_signing_key')],
    ...['-c', certificate],
    ...['-m', '12'],
    ...['-a', `127.0.0.1:${dirPort}`],
  ]);
  made.child.stdin?.end('of the test\n');
  await made;
  const identity = /^fingerprint ([0-9A-F]{40})$/m.exec(await readFile(certificate, 'utf8'))?.[1];
  const settings = join(folder, 'fingerprint.torrc');
  const nobody = `DirAuthority nobody 127.0.0.1:1 ${'f'.repeat(40)}`;
  const lines = ['TestingTorNetwork 1', nobody, `Nickname ${name}`, 'Address 127.0.0.1', `ORPort ${orPort}`];
  await writeFile(settings, `${[...lines, `DataDirectory ${folder}`].join('\n')}\n`);
  const listing = ['--list-fingerprint', '--quiet', '--defaults-torrc', '/dev/null', '-f', settings];
  const { stdout } = await run('tor', listing);
  const fingerprint = /((?:[0-9A-F]{4} ?){10})\s*$/.exec(stdout)?.[1]?.replaceAll(' ', '').trim();
  if (identity === undefined || fingerprint === undefined) throw new Error(`tor named no key: ${stdout}`);
  const line = `DirAuthority ${name} orport=${orPort} no-v2 v3ident=${identity} 127.0.0.1:${dirPort} ${fingerprint}`;
  return { name, folder, orPort, dirPort, line };
}

async function startRelay(
  started: ChildProcess[],
  {
    name,
    folder,
    lines,
  }: { readonly name: string; readonly folder: string; readonly lines: readonly string[] },
): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const settings = join(folder, 'torrc');
  const own = [
    `Nickname ${name}`,
    `DataDirectory ${folder}`,
    'Address 127.0.0.1',
    'SocksPort 0',
    'AssumeReachable 1',
    'ShutdownWaitLength 0',
    'Log notice stdout',
    // A test that is killed leaves nothing.
    `__OwningControllerProcess ${process.pid}`,
  ];
  await writeFile(settings, `${[...lines, ...own].join('\n')}\n`);
  const child = spawn('tor', ['--defaults-torrc', '/dev/null', '-f', settings], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  started.push(child);
  await whenListening(child);
}

/** All that it says is read: whoever writes into a pipe that nobody reads stands still. Rejects with its last complaint. */
async function whenListening(child: ChildProcess): Promise<void> {
  const listening = deferred<void>();
  let complaint = '';
  if (child.stdout !== null) {
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (/\[(warn|err)\]/.test(line)) complaint = line;
      if (line.includes('Bootstrapped ')) listening.resolve();
    });
  }
  child.once('error', listening.reject);
  child.once('exit', () => listening.reject(new Error(`a relay ended: ${complaint}`)));
  await listening.promise;
}

/** Until one directory that this authority gives out has all of them in it. */
async function whenListed(authority: Authority, relays: readonly string[]): Promise<void> {
  const socket = connect({ path: controlOf(authority.folder) });
  try {
    socket.write('AUTHENTICATE\r\nSETEVENTS NEWCONSENSUS\r\nGETINFO ns/all\r\n');
    let missing = new Set(relays);
    for await (const line of createInterface({ input: socket })) {
      // A line before the lists of each: the answer's, and an event's.
      if (/^\d{3}\+/.test(line)) missing = new Set(relays);
      missing.delete(/^r (\S+) /.exec(line)?.[1] ?? '');
      if (missing.size === 0) return;
    }
    throw new Error(`${authority.name} ended before ${[...missing].join(' and ')} was listed`);
  } finally {
    socket.destroy();
  }
}

const controlOf = (folder: string): string => join(folder, 'control');

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const over = once(child, 'exit');
  child.kill('SIGKILL');
  await over;
}

/** All of them at once, or the system gives the same one twice. */
async function freePorts(count: number): Promise<readonly number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  for (const server of servers) {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  }
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
