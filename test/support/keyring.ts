/**
 * A real keyring of GNOME on a session bus of the test's own, with Debian's programs in a folder of the test: nothing is
 * installed, so it works for any user. The bus starts the keyring when somebody asks for it, as on a desktop.
 */

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';

const run = promisify(execFile);

const packages = [
  ...['libsecret-tools', 'libsecret-1-0', 'gnome-keyring', 'dbus-daemon', 'libgck-1-0', 'libgcr-base-3-1'],
  ...['libglib2.0-0', 'libp11-kit0', 'libffi8', 'libdbus-1-3', 'libexpat1', 'libcap-ng0', 'libapparmor1'],
  ...['libgcrypt20', 'libgpg-error0', 'libsystemd0'],
];

export interface KeyringPrograms {
  /** `secret-tool` is in it, and writes down its arguments. */
  readonly bin: string;
  readonly folder: string;
  /** The command lines of `secret-tool` so far. */
  readonly said: () => Promise<string>;
}

/** Unpacks them below `folder`. */
export async function keyringPrograms(folder: string): Promise<KeyringPrograms> {
  const debs = join(folder, 'debs');
  const root = join(folder, 'root');
  const bin = join(folder, 'bin');
  for (const each of [debs, root, bin]) await mkdir(each);
  await run('apt-get', ['-q', 'download', ...(await namesHere(packages))], { cwd: debs });
  for (const deb of await readdir(debs)) await run('dpkg-deb', ['-x', join(debs, deb), root]);
  const libraries = (
    await Promise.all(
      ['usr/lib', 'lib'].map(async (place) =>
        (
          await readdir(join(root, place)).catch(() => [])
        )
          .filter((name) => name.endsWith('-linux-gnu'))
          .map((name) => join(root, place, name)),
      ),
    )
  ).flat();
  const calls = join(folder, 'calls');
  await writeFile(calls, '');
  for (const name of ['secret-tool', 'gnome-keyring-daemon', 'dbus-daemon']) {
    const note = name === 'secret-tool' ? `echo "$*" >>${calls}\n` : '';
    const lines = `#!/bin/sh\n${note}LD_LIBRARY_PATH=${libraries.join(':')} exec ${join(root, 'usr/bin', name)} "$@"\n`;
    await writeFile(join(bin, name), lines);
    await chmod(join(bin, name), 0o755);
  }
  return { bin, folder, said: () => readFile(calls, 'utf8') };
}

/** Since Debian 13 the name of some libraries ends in `t64`. */
async function namesHere(names: readonly string[]): Promise<string[]> {
  const { stdout } = await run('apt-cache', ['pkgnames', 'lib'], { maxBuffer: 64 << 20 });
  const known = new Set(stdout.split('\n'));
  return names.map((name) => (known.has(`${name}t64`) ? `${name}t64` : name));
}

export interface SessionBus {
  readonly address: string;
  /** Ends the keyring of this bus, and the bus. */
  readonly end: () => Promise<void>;
  /** Stops its keyring in the middle of whatever it does. */
  readonly freeze: () => Promise<void>;
}

/** `unlocked`: the keyring is opened with its password as it starts. All of them have the same folder of keys. */
export async function sessionBus(
  { folder, bin }: KeyringPrograms,
  options: { readonly unlocked: boolean },
): Promise<SessionBus> {
  const at = join(folder, `bus-${Math.random().toString(36).slice(2)}`);
  await mkdir(at, { mode: 0o700 });
  const home = join(folder, 'home');
  await mkdir(home, { recursive: true });
  const pidFile = join(at, 'pid');
  const start = options.unlocked ? "printf 'a password' | $ring --unlock" : 'exec $ring </dev/null';
  const lines = [
    '#!/bin/sh',
    `echo $$ >${pidFile}`,
    `export HOME=${home} XDG_DATA_HOME=${home}/data XDG_RUNTIME_DIR=${at}`,
    `ring="${bin}/gnome-keyring-daemon --foreground --components=secrets --control-directory=${at}/control"`,
    start,
  ];
  await writeFile(join(at, 'start'), `${lines.join('\n')}\n`, { mode: 0o755 });
  await writeFile(
    join(at, 'org.freedesktop.secrets.service'),
    `[D-BUS Service]\nName=org.freedesktop.secrets\nExec=${at}/start\n`,
  );
  await writeFile(
    join(at, 'bus.conf'),
    `<busconfig><type>session</type><listen>unix:path=${at}/bus</listen><auth>EXTERNAL</auth><servicedir>${at}</servicedir>` +
      '<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>',
  );
  // A group of its own: what the bus starts is in it, and ends with it.
  const bus = spawn(
    join(bin, 'dbus-daemon'),
    [`--config-file=${at}/bus.conf`, '--nofork', '--print-address=1'],
    {
      stdio: ['ignore', 'pipe', 'ignore'],
      detached: true,
    },
  );
  const gone = once(bus, 'close');
  const keyring = async (): Promise<number | undefined> =>
    await readFile(pidFile, 'utf8').then(Number, () => undefined);
  const signal = async (name: NodeJS.Signals): Promise<void> => {
    const pid = await keyring();
    if (pid === undefined) return;
    const { stdout } = await run('ps', ['-o', 'pid=', '--ppid', String(pid)]).catch(() => ({ stdout: '' }));
    for (const each of [
      ...stdout
        .split('\n')
        .map(Number)
        .filter((one) => one > 0),
      pid,
    ]) {
      try {
        process.kill(each, name);
      } catch {
        // It left by itself.
      }
    }
  };
  let ended = false;
  const end = async (): Promise<void> => {
    if (ended) return;
    ended = true;
    await signal('SIGKILL');
    const pid = await keyring();
    // It is the bus's child, not ours.
    if (pid !== undefined) await run('tail', ['-s', '0.05', `--pid=${pid}`, '-f', '/dev/null']);
    bus.kill();
    await gone;
  };
  onTestFinished(end);
  for await (const line of createInterface(bus.stdout)) {
    bus.stdout.resume();
    return { address: line, end, freeze: () => signal('SIGSTOP') };
  }
  throw new Error('the bus did not start');
}
