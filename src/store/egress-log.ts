/** The gate's decisions about one sandbox: a line of JSON each, in two files of bounded size. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type EgressLineView, egressLineView } from '../protocol/views.ts';
import type { EgressLog } from '../sandboxes/ports.ts';
import { RotatingFile, type Rotation } from './rotating-file.ts';
import { errno } from './state-failure.ts';
import { provideFolder } from './state-folder.ts';

const rotation: Rotation = { maxBytes: 4 * 2 ** 20, keep: 2 };

export class EgressLogFile implements EgressLog {
  readonly #folder: string;
  #file: RotatingFile | undefined;

  constructor(folder: string) {
    this.#folder = folder;
  }

  append(line: EgressLineView): void {
    if (this.#file === undefined) {
      provideFolder(this.#folder);
      this.#file = new RotatingFile(join(this.#folder, 'egress.jsonl'), rotation);
    }
    this.#file.append(JSON.stringify(line));
  }

  async read(): Promise<readonly EgressLineView[]> {
    const older = await textOf(join(this.#folder, 'egress.jsonl.1'));
    const newer = await textOf(join(this.#folder, 'egress.jsonl'));
    return `${older}${newer}`.split('\n').flatMap((line) => {
      const read = line === '' ? undefined : egressLineView.safeParse(JSON.parse(line));
      return read?.success === true ? [read.data] : [];
    });
  }

  close(): void {
    this.#file?.close();
    this.#file = undefined;
  }
}

async function textOf(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (errno(error) === 'ENOENT') return '';
    throw error;
  }
}
