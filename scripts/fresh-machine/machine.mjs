/**
 * A fresh machine that runs: a root folder in namespaces of its own. `run` resolves when its script has ended, and
 * `close` removes every trace. A machine whose program was killed is found and removed by the next one.
 */

import { spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from '../steps.mjs';
import { makeGroups, removeGroups } from './cgroups.mjs';

const folders = '/var/tmp';
const prefix = 'sallyport-fresh-';
const enter = fileURLToPath(new URL('enter.sh', import.meta.url));

/** Exit code of a process that a signal killed. */
const stoppedCode = 137;

export const cacheFolder = join(folders, 'sallyport-bare-systems');

const passedOn = ['SALLYPORT_MUST_WORK', 'SALLYPORT_TEST_WORKERS'];

/** Everything that a new log-in would have, and of this process's environment only what is passed on. */
export function logInEnvironment() {
  return {
    HOME: '/root',
    LANG: 'C.UTF-8',
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    TERM: 'dumb',
    CI: 'true',
    // Node.js has certificates of its own, and would not know an authority that the machine trusts.
    NODE_EXTRA_CA_CERTS: '/etc/ssl/certs/ca-certificates.crt',
    ...Object.fromEntries(
      passedOn.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
    ),
  };
}

export class FreshMachine {
  /** Those of its processes and its network, once it runs. */
  namespaces = [];

  /** `source` is the folder that the machine has, read-only, as /mnt/source. */
  constructor(source = root) {
    this.source = source;
    this.folder = mkdtempSync(join(folders, `${prefix}${process.pid}-`));
    this.id = basename(this.folder);
    this.root = join(this.folder, 'root');
    mkdirSync(this.root);
  }

  /**
   * Runs a command as root inside; resolves with its exit code. `connect` gets the pid of the machine's first process and
   * resolves with the process that serves its network.
   */
  async run(command, { connect, onOutput }) {
    if (this.#isStopped) return stoppedCode;
    const groups = makeGroups(this.id);
    // The process joins the groups first: a cgroup namespace begins where its first process is.
    const joinGroups =
      'for file in $GROUPS_TO_JOIN; do echo $$ >"$file"; done; unset GROUPS_TO_JOIN; exec "$@"';
    const namespaces = ['--mount', '--pid', '--net', '--ipc', '--uts', '--cgroup', '--fork', '--kill-child'];
    const child = spawn(
      'setpriv',
      [
        '--pdeathsig=KILL',
        'sh',
        '-c',
        joinGroups,
        'sh',
        'unshare',
        ...namespaces,
        'sh',
        enter,
        this.root,
        this.source,
        ...command,
      ],
      {
        env: { ...logInEnvironment(), GROUPS_TO_JOIN: groups.join(' ') },
        stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
        detached: true,
      },
    );
    this.#child = child;
    child.stdout.on('data', onOutput);
    child.stderr.on('data', onOutput);
    const ended = new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code, signal) => resolve(code ?? (signal === 'SIGINT' ? 130 : stoppedCode)));
    });
    const ready = new Promise((resolve) => child.stdio[3].once('data', () => resolve(true)));
    if (await Promise.race([ready, ended.then(() => false)])) {
      const first = firstChildOf(child.pid);
      this.namespaces = ['net', 'pid'].map((kind) => holdNamespace(`/proc/${first}/ns/${kind}`));
      this.#network = await connect(first);
      if (this.#isStopped) await this.stop();
      else child.stdio[4].end('connected\n');
    }
    return await ended;
  }

  #child;
  #network;
  #isStopped = false;

  get isStopped() {
    return this.#isStopped;
  }

  /** Ends every process of the machine; `run` then resolves, also one that is called or connected later. */
  async stop() {
    this.#isStopped = true;
    for (const started of [this.#child, this.#network]) {
      if (started === undefined || started.exitCode !== null || started.signalCode !== null) continue;
      const ended = new Promise((resolve) => started.once('exit', resolve));
      started.kill('SIGKILL');
      await ended;
    }
  }

  /** Stops the machine and removes its folder and groups; returns what could not be removed. */
  async close() {
    await this.stop();
    return await removeMachine(this.folder);
  }
}

/** Its id. The kernel gives the id of one that ended to the next, so this process keeps it until it ends itself. */
function holdNamespace(file) {
  openSync(file, 'r');
  return readlinkSync(file);
}

/** `unshare` starts the machine's first process as its only child. */
function firstChildOf(pid) {
  const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
  if (!child) throw new Error('the first process of the machine has ended');
  return Number(child);
}

/**
 * SECURITY: all mounts of a machine are in its own mount namespace. If one is visible here nevertheless, the folder is
 * left alone: removing it would remove what is mounted.
 */
async function removeMachine(folder) {
  const left = await groupsGone(basename(folder));
  const mounted = readFileSync('/proc/self/mountinfo', 'utf8').includes(` ${folder}/`);
  if (mounted) return [...left, `${folder} (something is mounted in it)`];
  spawnSync('rm', ['-rf', '--one-file-system', folder], { stdio: ['ignore', 'ignore', 'inherit'] });
  return existsSync(folder) ? [...left, folder] : left;
}

/** The kernel removes processes of a killed namespace a moment after its first one. */
async function groupsGone(id) {
  const deadline = Date.now() + 10_000;
  for (;;) {
    const left = removeGroups(id);
    if (left.length === 0 || Date.now() > deadline) return left;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export async function removeAbandoned() {
  for (const name of readdirSync(folders).filter((entry) => entry.startsWith(prefix))) {
    const [pid] = name.slice(prefix.length).split('-');
    if (existsSync(`/proc/${pid}`)) continue;
    console.error(`sally: removing ${name}, which an interrupted run left`);
    await removeMachine(join(folders, name));
  }
}
