/**
 * One `tor` process: its settings, its start, how far it has come, its end. It listens on a Unix socket in a folder that only its owner
 * can enter, so nobody else of this machine can use it.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { deferred } from '../../lib/deferred.ts';
import { SallyportError } from '../../protocol/errors.ts';
import { type BootstrapPhase, watchBootstrap } from './tor-control.ts';

export interface TorSettings {
  readonly program: string;
  /** Its own. */
  readonly folder: string;
  /** Settings of the user that ours come on top of: bridges, for example. */
  readonly userSettings?: string | undefined;
}

const killMs = 5000;
const keptLines = 20;
const keptComplaints = 3;

export class TorProcess {
  readonly socksPath: string;
  readonly #child: ChildProcess;
  readonly #controlPath: string;
  readonly #ready = deferred<void>();
  readonly #ended = deferred<SallyportError>();
  readonly #onPhase: (phase: BootstrapPhase) => void;
  readonly #lastLines: string[] = [];
  #control: Socket | undefined;
  #isStopping = false;
  phase: BootstrapPhase = { percent: 0, summary: 'Starting' };

  constructor(settings: TorSettings, onPhase: (phase: BootstrapPhase) => void) {
    const { program, folder, userSettings } = settings;
    this.#onPhase = onPhase;
    this.socksPath = join(folder, 'socks');
    this.#controlPath = join(folder, 'control');
    const torrc = writeSettings(folder, this.socksPath, this.#controlPath);
    this.#ready.promise.catch(() => {});
    // Ours win over the user's, option by option; the system's own file is not read.
    const args = ['--defaults-torrc', userSettings ?? '/dev/null', '-f', torrc];
    // HOME keeps it from looking for files of the user's own.
    this.#child = spawn(program, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { HOME: folder },
      cwd: '/',
    });
    this.#child.once('error', (error) => this.#onEnd(error.message));
    // Not at its exit: what it said last may not have been read by then.
    this.#child.once('close', (code, signal) => this.#onEnd(`it ended with ${signal ?? code}`));
    for (const output of [this.#child.stdout, this.#child.stderr]) {
      if (output !== null) createInterface({ input: output }).on('line', (line) => this.#onLine(line));
    }
  }

  /** Circuits can be built. Rejects with `tor_failed` if it ended before. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Resolves with what happened. */
  get ended(): Promise<SallyportError> {
    return this.#ended.promise;
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#child.kill('SIGTERM');
    const late = setTimeout(() => this.#child.kill('SIGKILL'), killMs);
    await this.#ended.promise;
    clearTimeout(late);
  }

  #onLine(line: string): void {
    this.#lastLines.push(line);
    if (this.#lastLines.length > keptLines) this.#lastLines.shift();
    // Its listeners are open when it says this for the first time.
    if (this.#control !== undefined || !line.includes('Bootstrapped ')) return;
    this.#control = watchBootstrap(this.#controlPath, {
      phase: (phase) => this.#reached(phase),
      failed: (error) => {
        this.#lastLines.push(error.message);
        // SECURITY: one that does not end with this process is not kept.
        this.#child.kill('SIGKILL');
      },
    });
  }

  #reached(phase: BootstrapPhase): void {
    this.phase = phase;
    this.#onPhase(phase);
    if (phase.percent >= 100) this.#ready.resolve();
  }

  #onEnd(how: string): void {
    this.#control?.destroy();
    const complaints = this.#lastLines.flatMap((line) => /\[(?:warn|err)\] (.*)$/.exec(line)?.[1] ?? []);
    const words = complaints.slice(-keptComplaints).join(' ');
    const error = new SallyportError(
      'tor_failed',
      this.#isStopping ? 'Tor was stopped' : `Tor: ${how}${words === '' ? '' : `: ${words}`}`,
      { details: { percent: this.phase.percent } },
    );
    this.#ready.reject(error);
    this.#ended.resolve(error);
  }
}

function writeSettings(folder: string, socks: string, control: string): string {
  const data = join(folder, 'data');
  mkdirSync(data, { recursive: true, mode: 0o700 });
  // Tor refuses folders that others can enter, and one that is there may be of another umask.
  for (const each of [folder, data]) chmodSync(each, 0o700);
  for (const socket of [socks, control]) rmSync(socket, { force: true });
  const path = join(folder, 'torrc');
  const lines = [
    `DataDirectory ${quoted(data)}`,
    // Streams of different logins never share a circuit: each sandbox has its own.
    `SocksPort unix:${quoted(socks)} IsolateSOCKSAuth`,
    `ControlPort unix:${quoted(control)}`,
    'CookieAuthentication 0',
    'ClientOnly 1',
    'RunAsDaemon 0',
    'Log notice stdout',
    // For the moment until it is told by its control connection.
    `__OwningControllerProcess ${process.pid}`,
  ];
  writeFileSync(path, `${lines.join('\n')}\n`, { mode: 0o600 });
  return path;
}

const quoted = (text: string): string => `"${text.replaceAll(/["\\]/g, '\\$&')}"`;
