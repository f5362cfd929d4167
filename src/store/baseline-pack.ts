/**
 * The content of what was copied into a sandbox, one file after the other in `baseline.pack`, which only grows. Where each
 * one is says the manifest, which is written after it: what a crash left behind the last known byte belongs to nobody.
 */

import { type FileHandle, open } from 'node:fs/promises';
import type { BaselineWriter } from '../sandboxes/ports.ts';
import { stateFailure } from './state-failure.ts';
import { fileMode } from './state-folder.ts';

/** Small files are many: they are written together. */
const flushBytes = 1024 * 1024;
const chunkBytes = 64 * 1024;

export async function openPack(path: string): Promise<BaselineWriter> {
  try {
    const file = await open(path, 'a', fileMode);
    return new Pack(path, file, (await file.stat()).size);
  } catch (cause) {
    throw stateFailure('keeping what was copied in', path, cause);
  }
}

class Pack implements BaselineWriter {
  readonly #path: string;
  readonly #file: FileHandle;
  #bytes: number;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #closing: Promise<void> | undefined;

  constructor(path: string, file: FileHandle, bytes: number) {
    this.#path = path;
    this.#file = file;
    this.#bytes = bytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  async write(chunk: Uint8Array): Promise<void> {
    this.#waiting.push(chunk);
    this.#waitingBytes += chunk.length;
    this.#bytes += chunk.length;
    if (this.#waitingBytes >= flushBytes) await this.#flush();
  }

  async close(): Promise<void> {
    this.#closing ??= this.#flush().finally(() => this.#file.close());
    await this.#closing;
  }

  async #flush(): Promise<void> {
    const all = Buffer.concat(this.#waiting, this.#waitingBytes);
    this.#waiting = [];
    this.#waitingBytes = 0;
    try {
      await this.#file.appendFile(all);
    } catch (cause) {
      throw stateFailure('keeping what was copied in', this.#path, cause);
    }
  }
}

export async function* readPack(path: string, offset: number, sizeBytes: number): AsyncGenerator<Buffer> {
  const file = await open(path, 'r').catch((cause: unknown) => {
    throw stateFailure('reading what was copied in', path, cause);
  });
  try {
    for (let done = 0; done < sizeBytes; ) {
      const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, sizeBytes - done));
      const { bytesRead } = await file.read(chunk, 0, chunk.length, offset + done);
      if (bytesRead === 0)
        throw stateFailure('reading what was copied in', path, new Error('it is too short'));
      done += bytesRead;
      yield chunk.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}
