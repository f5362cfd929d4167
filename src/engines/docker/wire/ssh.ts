/**
 * A connection to a remote engine through the system's ssh, so that the user's configuration, agent and known_hosts
 * hold: `ssh HOST docker system dial-stdio` carries the engine's socket on its standard input and output.
 */

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { Duplex } from 'node:stream';
import type { Endpoint } from '../endpoint/endpoint.ts';

type SshEndpoint = Extract<Endpoint, { kind: 'ssh' }>;

/** ssh itself failed: not found, refused, host key unknown. Its message is ssh's own. */
export class SshError extends Error {
  override readonly name = 'SshError';
}

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
  // In a session of its own: a Ctrl-C at the terminal is for us, and cleaning up afterwards still needs the connection.
  return new SshSocket(spawn('ssh', sshArguments(endpoint), { stdio: 'pipe', detached: true }));
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
    for (const stream of [child.stdin, child.stdout, child.stderr]) {
      // ssh ended; its exit status below says why.
      stream.on('error', () => {});
    }
    child.on('error', (cause) => this.destroy(new SshError('the program ssh cannot be started', { cause })));
    child.on('close', (code) => {
      if (code === 0) this.push(null);
      else this.destroy(new SshError(this.#stderr.trim() || `exit status ${code}`));
    });
  }

  override _read(): void {
    this.#child.stdout.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    // Called also when the write failed, so that nothing waits for a dead ssh.
    this.#child.stdin.write(chunk, () => done());
  }

  override _final(done: () => void): void {
    this.#child.stdin.end(() => done());
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#child.kill();
    done(error);
  }

  // node:http calls these on every socket.
  destroySoon(): void {
    if (!this.writableEnded) this.end();
    if (this.writableFinished) this.destroy();
    else this.once('finish', () => this.destroy());
  }
  // These have no meaning for a pipe.
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
