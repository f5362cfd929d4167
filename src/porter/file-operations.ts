/** Starts file operations, no more at a time than porter takes. */

import { Slots } from '../lib/slots.ts';
import { cancelledError, type FileSubject } from './file-error.ts';
import { FileStream } from './file-stream.ts';
import { frameType } from './frame.ts';
import type { PorterLink } from './link.ts';
import { PayloadWriter } from './payload.ts';

export const operation = {
  stat: 1,
  lstat: 2,
  list: 3,
  read: 4,
  write: 5,
  mkdir: 6,
  remove: 7,
  rename: 8,
  symlink: 9,
  readlink: 10,
  chmod: 11,
  watch: 12,
  putTree: 13,
  getTree: 14,
} as const;

const givers: ReadonlySet<number> = new Set([
  operation.list,
  operation.read,
  operation.watch,
  operation.getTree,
]);
const mostAtOnce = 32;

export interface OperationSource {
  readonly link: PorterLink;
  readonly inputWindow: number;
  /** False: a porter of before that knows no limits of trees. */
  readonly hasTreeLimits: boolean;
  /** False: one of before that reads holes as zeros. */
  readonly readsHoles: boolean;
  readonly reserveStream: () => number;
}

export class FileOperations {
  readonly #source: OperationSource;
  readonly #slots = new Slots(mostAtOnce);

  constructor(source: OperationSource) {
    this.#source = source;
  }

  async start(
    number: number,
    subject: FileSubject,
    fields: PayloadWriter,
    { signal }: { readonly signal?: AbortSignal },
  ): Promise<FileStream> {
    const { link, inputWindow, reserveStream } = this.#source;
    const leave = await this.#slots.take(signal).catch((cause: unknown) => {
      throw cancelledError(subject, cause);
    });
    const onAbort = (): void => started.cancel(signal?.reason);
    const stream = reserveStream();
    const started = new FileStream({
      link,
      stream,
      inputWindow,
      subject,
      givesData: givers.has(number),
      onOver: () => {
        leave();
        signal?.removeEventListener('abort', onAbort);
      },
    });
    if (link.failure !== undefined) {
      started.fail(link.failure);
      return started;
    }
    link.own(stream, started);
    link.sendLong(
      frameType.file,
      stream,
      Buffer.concat([new PayloadWriter().u32(number).end(), fields.end()]),
    );
    signal?.addEventListener('abort', onAbort, { once: true });
    if (signal?.aborted === true) onAbort();
    return started;
  }
}
