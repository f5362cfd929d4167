/**
 * What the gate must still have after a restart of the daemon, because programs inside have its other half: the CA of a
 * sandbox, and the phantoms of its secrets. Beside the sandbox's record, for its owner alone, and removed with it.
 */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { isSandboxId, type SandboxId } from '../protocol/ids.ts';
import { errno, stateFailure } from './state-failure.ts';
import { provideFolder, replaceFile } from './state-folder.ts';

const keysSchema = z.strictObject({
  authority: z.strictObject({ name: z.string(), key: z.string(), certificate: z.string() }),
  phantoms: z.record(z.string(), z.string()),
});
export type GateKeys = Readonly<z.infer<typeof keysSchema>>;

export class GateKeyFiles {
  readonly #folder: string;

  constructor(stateDir: string) {
    this.#folder = join(stateDir, 'sandboxes');
  }

  /** Undefined where there is none, or none that can be understood: then new ones are made, and what is inside is renewed. */
  load(id: SandboxId): GateKeys | undefined {
    const path = this.#path(id);
    try {
      const parsed = keysSchema.safeParse(JSON.parse(readFileSync(path, 'utf8')));
      return parsed.success ? parsed.data : undefined;
    } catch (cause) {
      if (errno(cause) === 'ENOENT' || cause instanceof SyntaxError) return undefined;
      throw stateFailure("reading a sandbox's keys", path, cause);
    }
  }

  save(id: SandboxId, keys: GateKeys): void {
    provideFolder(join(this.#folder, id));
    replaceFile(this.#path(id), `${JSON.stringify(keys, null, 2)}\n`);
  }

  #path(id: SandboxId): string {
    // SECURITY: ids become paths.
    if (!isSandboxId(id)) throw new RangeError(`${JSON.stringify(id)} is no id of a sandbox`);
    return join(this.#folder, id, 'gate.json');
  }
}
