/**
 * A connection to a remote engine through the system's ssh, so that the user's configuration, agent and known_hosts
 * hold: `ssh HOST docker system dial-stdio` carries the engine's socket on its standard input and output.
 */

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { Duplex } from 'node:stream';
import type { Endpoint } from '../endpoint/endpoint.ts';

type SshEndpoint = Extract<Endpoint, { kind: 'ssh' }>;

/** Pure, so that a test can show that no part of an address becomes an option. */
export function sshArguments(endpoint: SshEndpoint): readonly string[] {
  return [
    // Nobody is there to answer a prompt; an unknown host key is a failure, not a question.
    '-o',
    'BatchMode=yes',
    '-o',
    'ConnectTimeout=10',
    '-T',
    ...(endpoint.user === undefined ? [] : ['-l', endpoint.user]),
    ...(endpoint.port === undefined ? [] : ['-p', String(endpoint.port)]),
    '--',
    endpoint.host,
    'docker',
    'system',
    'dial-stdio',
  ];
}

export function dialOverSsh(endpoint: SshEndpoint): Duplex {
  return new SshSocket(spawn('ssh', sshArguments(endpoint), { stdio: 'pipe' }));
}

const maxStderrBytes = 4096;

class SshSocket extends Duplex {
  readonly #child: ChildProcessWithoutNullStreams;
  #stderr = '';

  constructor(child: ChildProcessWithoutNullStreams) {
    super({ allowHalfOpen: true });
    this.#child = child;
    child.stdout.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) child.stdout.pause();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      this.#stderr = (this.#stderr + chunk.toString('utf8')).slice(-maxStderrBytes);
    });
    child.stdin.on('error', () => {
      // ssh ended; its exit status below says why.
    });
    child.on('error', (error) => this.destroy(error));
    child.on('close', (code) => {
      if (code === 0) this.push(null);
      else this.destroy(new Error(`ssh: ${this.#stderr.trim() || `exit status ${code}`}`));
    });
  }

  override _read(): void {
    this.#child.stdout.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    if (this.#child.stdin.write(chunk)) done();
    else this.#child.stdin.once('drain', () => done());
  }

  override _final(done: () => void): void {
    this.#child.stdin.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#child.kill();
    done(error);
  }

  // node:http calls these on every socket; they have no meaning for a pipe.
  setTimeout(): this {
    return this;
  }
  setNoDelay(): this {
    return this;
  }
  setKeepAlive(): this {
    return this;
  }
  ref(): this {
    this.#child.ref();
    return this;
  }
  unref(): this {
    this.#child.unref();
    return this;
  }
}
