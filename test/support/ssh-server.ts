/** A real sshd on a port of the loopback interface, with keys of its own, whose sessions find the engine under test. */

import { execFile, spawn } from 'node:child_process';
import { accessSync, constants, mkdirSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { onTestFinished, vi } from 'vitest';
import { canInstall, installPackages, isDebianLike } from '../../src/images/debian-packages.ts';
import { freePort } from './free-port.ts';
import { temporaryFolder } from './little-engine.ts';
import { isRoot } from './requires.ts';

const run = promisify(execFile);

export function findProgram(name: string): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/usr/bin'];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Whether this machine can play both ends; installs what is missing where that is allowed. */
export async function provideSsh(): Promise<boolean> {
  const there = (): boolean => ['ssh', 'sshd', 'ssh-keygen'].every((name) => findProgram(name) !== undefined);
  if (!there() && canInstall() && (await isDebianLike())) {
    process.stderr.write('set-up: installing openssh-server, openssh-client\n');
    await installPackages(['openssh-server', 'openssh-client'], {
      progress: ({ message }) => process.stderr.write(`set-up: ${message}\n`),
    });
  }
  return there();
}

export interface SshServer {
  /** As `DOCKER_HOST` takes it. */
  readonly address: string;
  /** Makes the client believe that it has never seen this server. */
  readonly forgetHostKey: () => void;
}

/** Resolves with the public half. */
export async function makeKey(path: string): Promise<string> {
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'test', '-f', path]);
  return (await run('ssh-keygen', ['-y', '-f', path])).stdout.trim();
}

export interface PlainSshServer {
  readonly port: number;
  /** Who may log in. */
  readonly user: string;
  /** Its public key, as `known_hosts` has it after the name. */
  readonly hostKey: string;
}

/** Lets in whoever has one of these keys, as the user who runs the test. */
export async function startPlainSshServer(
  folder: string,
  keys: readonly string[],
  more: readonly string[] = [],
): Promise<PlainSshServer> {
  const at = (name: string): string => join(folder, name);
  const port = await freePort();
  const hostKey = await makeKey(at('host_key'));
  writeFileSync(at('authorized_keys'), keys.map((key) => `${key}\n`).join(''));
  const settings = [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${at('host_key')}`,
    `AuthorizedKeysFile ${at('authorized_keys')}`,
    'PidFile none',
    'UsePAM no',
    'StrictModes no',
    'PermitRootLogin prohibit-password',
    'PasswordAuthentication no',
    'MaxStartups 100',
    ...more,
  ];
  writeFileSync(at('sshd_config'), `${settings.join('\n')}\n`);
  // Where sshd confines the part of itself that speaks before anybody has logged in.
  if (isRoot) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 });
  await startDaemon(at('sshd_config'));
  return { port, user: userInfo().username, hostKey };
}

export async function startSshServer(dockerHost: string): Promise<SshServer> {
  const folder = temporaryFolder();
  const key = await makeKey(join(folder, 'client_key'));
  const { port, user, hostKey } = await startPlainSshServer(
    folder,
    [key],
    [`SetEnv DOCKER_HOST=${dockerHost}`],
  );
  const knownHosts = join(folder, 'known_hosts');
  writeFileSync(knownHosts, `[127.0.0.1]:${port} ${hostKey}\n`);
  useClientConfig(folder);
  return {
    address: `ssh://${user}@127.0.0.1:${port}`,
    forgetHostKey: () => writeFileSync(knownHosts, ''),
  };
}

async function startDaemon(config: string): Promise<void> {
  const daemon = spawn(findProgram('sshd') ?? 'sshd', ['-D', '-e', '-f', config], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const gone = new Promise<void>((resolve) => daemon.once('close', () => resolve()));
  onTestFinished(async () => {
    daemon.kill();
    await gone;
  });
  const said: string[] = [];
  for await (const line of createInterface(daemon.stderr)) {
    said.push(line);
    if (line.includes('Server listening')) {
      daemon.stderr.resume();
      return;
    }
  }
  throw new Error(`sshd did not start: ${said.join('; ')}`);
}

/** OpenSSH looks for its files in the home of the password database, whatever HOME says; so `ssh` is wrapped. */
function useClientConfig(folder: string): void {
  const settings = [
    `IdentityFile ${join(folder, 'client_key')}`,
    'IdentitiesOnly yes',
    `UserKnownHostsFile ${join(folder, 'known_hosts')}`,
    'GlobalKnownHostsFile /dev/null',
  ];
  const config = join(folder, 'ssh_config');
  writeFileSync(config, `${settings.join('\n')}\n`);
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  const script = `#!/bin/sh\nexec ${findProgram('ssh')} -F ${config} "$@"\n`;
  writeFileSync(join(bin, 'ssh'), script, { mode: 0o755 });
  vi.stubEnv('PATH', `${bin}${delimiter}${process.env['PATH']}`);
  onTestFinished(() => {
    vi.unstubAllEnvs();
  });
}
