/**
 * One file operation under way: its data in or out under credit, and how it ended.
 *
 * What porter sends is checked when it arrives as far as frames go; whoever takes the data apart uses `trust` for the
 * rest, so that a lie ends the connection wherever it is found.
 */

import { deferred } from '../lib/deferred.ts';
import { isSallyportError, type SallyportError } from '../protocol/errors.ts';
import { CreditAccount } from './credit.ts';
import { cancelledError, type FileSubject, fileError } from './file-error.ts';
import { frameType } from './frame.ts';
import { type PorterLink, type StreamOwner, violation } from './link.ts';
import { OutputQueue } from './output-queue.ts';
import { PayloadReader } from './payload.ts';
import { StreamInput } from './stream-input.ts';

const maxResultBytes = 4096 + 8;

export interface FileStreamOptions {
  readonly link: PorterLink;
  readonly stream: number;
  readonly inputWindow: number;
  readonly subject: FileSubject;
  readonly givesData: boolean;
  /** Called once, when porter is done with it or the link ended. */
  readonly onOver: () => void;
}

export class FileStream implements StreamOwner {
  readonly input: StreamInput;
  /** The result's fields; rejects with what the errno means. */
  readonly result: Promise<PayloadReader>;
  readonly #options: FileStreamOptions;
  readonly #result = deferred<PayloadReader>();
  readonly #data = new OutputQueue();
  readonly #account: CreditAccount;
  #over = false;
  #cancelled = false;

  constructor(options: FileStreamOptions) {
    this.#options = options;
    this.input = new StreamInput(options.link, options.stream, options.inputWindow);
    this.#account = new CreditAccount(options.link, options.stream);
    this.result = this.#result.promise;
    // Whoever reads the data learns of a failure there, and may never look at the result.
    this.result.catch(() => {});
  }

  /** The data, as it is taken. Ends with the failure of the operation if it failed. A reader that stops early cancels it. */
  async *data(): AsyncGenerator<Buffer> {
    try {
      yield* this.#data;
      await this.result;
    } finally {
      this.cancel();
    }
  }

  /** Kills the operation; the caller has its error at once, the place is free when porter has answered. */
  cancel(cause?: unknown): void {
    if (this.#over || this.#cancelled) return;
    this.#cancelled = true;
    const { link, stream, subject } = this.#options;
    link.send(frameType.cancel, stream);
    this.#settle(cancelledError(subject, cause));
    this.#data.discard();
  }

  /** Runs what takes porter's words apart. What does not fit ends the connection. */
  trust<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      const { link } = this.#options;
      link.fail(isSallyportError(error) ? error : violation('unreadable', error));
      throw error;
    }
  }

  onFrame(type: number, payload: Buffer): void {
    switch (type) {
      case frameType.data:
        this.#onData(payload);
        return;
      case frameType.credit:
        this.input.onCredit(new PayloadReader(payload).u32());
        return;
      case frameType.done:
        this.#onDone(new PayloadReader(payload));
        return;
      default:
        throw violation(`frame ${type} on a file operation`);
    }
  }

  fail(error: SallyportError): void {
    this.#end();
    this.#settle(error);
  }

  #onData(payload: Buffer): void {
    if (!this.#options.givesData || payload.length === 0) throw violation('data where there is none');
    this.#account.arrived(payload.length);
    void this.#data.push(payload).then(() => {
      if (!this.#over) this.#account.taken(payload.length);
    });
  }

  #onDone(payload: PayloadReader): void {
    const errno = payload.u32();
    const result = payload.bytes();
    payload.done();
    if (result.length > maxResultBytes) throw violation('a result that is too long');
    this.#options.link.disown(this.#options.stream);
    this.#end();
    if (errno === 0) this.#settle(undefined, result);
    else this.#settle(fileError(this.#options.subject, errno, result));
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#account.end();
    this.#options.onOver();
  }

  #settle(failure: SallyportError | undefined, result?: Buffer): void {
    this.input.close();
    this.#data.end(failure);
    if (failure !== undefined) this.#result.reject(failure);
    else this.#result.resolve(new PayloadReader(Buffer.from(result ?? Buffer.alloc(0))));
  }
}
