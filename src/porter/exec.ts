/** One program inside the sandbox, as its host sees it. */

import { deferred } from '../lib/deferred.ts';
import { SallyportError } from '../protocol/errors.ts';
import { OutputQueue } from './output-queue.ts';
import type { PayloadReader } from './payload.ts';

export interface ExecRequest {
  /** Program and arguments. No shell is implied. */
  readonly argv: readonly [string, ...string[]];
  /** The whole environment: nothing else is inherited. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Without it the program reads end of file at once. */
  readonly stdin: boolean;
}

export interface ExecResult {
  /** Absent when a signal ended the program. */
  readonly exitCode?: number;
  readonly signal?: number;
  readonly userCpuMicroseconds: number;
  readonly systemCpuMicroseconds: number;
  readonly maxRssBytes: number;
  /** A process that outlived the program still held its output open: there may have been more to come. */
  readonly outputIncomplete: boolean;
}

/** What an exec needs of its connection. */
export interface ExecLink {
  readonly stdinWindow: number;
  taken(stream: number, bytes: number): void;
  sendStdin(stream: number, bytes: Buffer): void;
  sendSignal(stream: number, signal: number): void;
}

const incompleteFlag = 1;

export class Exec {
  readonly stream: number;
  readonly stdout: OutputQueue;
  readonly stderr: OutputQueue;
  /** Resolves with the pid inside once the program runs; rejects with `exec_start_failed`. */
  readonly started: Promise<number>;
  readonly result: Promise<ExecResult>;
  readonly #link: ExecLink;
  readonly #started = deferred<number>();
  readonly #result = deferred<ExecResult>();
  #stdinCredit: number;
  #stdinWake: (() => void) | undefined;
  #over = false;

  constructor(stream: number, link: ExecLink) {
    this.stream = stream;
    this.#link = link;
    this.#stdinCredit = link.stdinWindow;
    this.stdout = new OutputQueue((bytes) => link.taken(stream, bytes));
    this.stderr = new OutputQueue((bytes) => link.taken(stream, bytes));
    this.started = this.#started.promise;
    this.result = this.#result.promise;
    // Whoever awaits only one of the two must not be killed by the rejection of the other.
    this.started.catch(() => {});
    this.result.catch(() => {});
  }

  /** Resolves when the sandbox has taken the bytes; what a program that ended does not read is dropped. */
  async write(data: Buffer): Promise<void> {
    for (let offset = 0; offset < data.length && !this.#over; ) {
      if (this.#stdinCredit === 0) {
        await new Promise<void>((resolve) => {
          this.#stdinWake = resolve;
        });
        continue;
      }
      const part = data.subarray(offset, offset + Math.min(this.#stdinCredit, 32 * 1024));
      this.#stdinCredit -= part.length;
      offset += part.length;
      this.#link.sendStdin(this.stream, part);
    }
  }

  endStdin(): void {
    if (!this.#over) this.#link.sendStdin(this.stream, Buffer.alloc(0));
  }

  /** To the program's whole process group. */
  signal(number: number): void {
    if (!this.#over) this.#link.sendSignal(this.stream, number);
  }

  onStarted(payload: PayloadReader): void {
    this.#started.resolve(payload.u32());
  }

  onNotStarted(payload: PayloadReader): void {
    const errno = payload.u32();
    const reason = payload.text().slice(0, 200);
    this.fail(new SallyportError('exec_start_failed', reason, { details: { errno } }));
  }

  onStdinCredit(bytes: number): void {
    this.#stdinCredit = Math.min(this.#stdinCredit + bytes, this.#link.stdinWindow);
    this.#stdinWake?.();
  }

  onExit(payload: PayloadReader): void {
    const signal = payload.u32();
    const exitCode = payload.u32();
    const result: ExecResult = {
      ...(signal === 0 ? { exitCode: exitCode & 0xff } : { signal }),
      userCpuMicroseconds: payload.u64(),
      systemCpuMicroseconds: payload.u64(),
      maxRssBytes: payload.u64(),
      outputIncomplete: (payload.u32() & incompleteFlag) !== 0,
    };
    this.#finish();
    this.stdout.end();
    this.stderr.end();
    this.#result.resolve(result);
  }

  fail(error: SallyportError): void {
    this.#finish();
    this.stdout.end(error);
    this.stderr.end(error);
    this.#started.reject(error);
    this.#result.reject(error);
  }

  #finish(): void {
    this.#over = true;
    this.#stdinWake?.();
  }
}
