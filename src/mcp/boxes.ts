/**
 * The sandboxes of one client. The first is made when it is needed; all that were made here are gone when the client is.
 * A model sees these and no other of this machine.
 */

import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import { camelled } from '../sdk/case.ts';
import type { DaemonClient } from '../sdk/client.ts';
import { type CreateOptions, Sandbox } from '../sdk/sandbox.ts';
import { type McpRules, type SandboxRequest, specFor } from './rules.ts';

export interface BoxesOptions {
  readonly client: DaemonClient;
  readonly rules: McpRules;
  /** The human agreed to what the workspace's Dockerfile.sallyport says: now, or when it had this `approval`. */
  readonly approveDockerfile: boolean | string;
  readonly signal: AbortSignal;
  /** For what has no place in the protocol. */
  readonly report: (error: Error) => void;
}

export class McpBoxes {
  readonly #options: BoxesOptions;
  readonly #boxes = new Map<string, Sandbox>();
  #making = 0;
  #first: Promise<Sandbox> | undefined;

  constructor(options: BoxesOptions) {
    this.#options = options;
  }

  all(): readonly Sandbox[] {
    return [...this.#boxes.values()];
  }

  /** The one of this name, or the client's first one. */
  async get(name?: string): Promise<Sandbox> {
    if (name === undefined) return await this.#firstOne();
    const found = this.#boxes.get(name);
    if (found !== undefined) return found;
    const known = [...this.#boxes.keys()].join(', ');
    throw new SallyportError('sandbox_not_found', `there is no sandbox ${JSON.stringify(name)}`, {
      advice: known === '' ? 'Leave the name out, or make it first.' : `Use one of: ${known}.`,
      details: { sandbox: name },
    });
  }

  /**
   * Does what a tool is to do. The human's own sandbox may have been stopped meanwhile, which a call is refused for before anything
   * is done: then it is started, and the work begun anew. Asking before each call would cost every one of them a round trip.
   */
  async use<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!isSallyportError(error, 'sandbox_state')) throw error;
      const { name } = this.#options.rules.spec;
      const box = name === undefined ? undefined : this.#boxes.get(name);
      if (box === undefined || error.details['sandbox'] !== name) throw error;
      await box.ensureRunning();
      return await work();
    }
  }

  async create(request: SandboxRequest): Promise<Sandbox> {
    const { rules } = this.#options;
    if (this.#boxes.size + this.#making >= rules.mostSandboxes) {
      throw new SallyportError('usage', `there are ${rules.mostSandboxes} sandboxes already`, {
        advice: 'Remove one that is not needed any more.',
        details: { most: rules.mostSandboxes },
      });
    }
    return await this.#make({ ...camelled(specFor(rules, request)), ephemeral: true });
  }

  async remove(name: string): Promise<void> {
    if (name === this.#options.rules.spec.name) {
      throw new SallyportError('usage', `the sandbox ${name} is the user's own, and stays`, {
        advice: 'Remove only sandboxes that you made.',
        details: { sandbox: name },
      });
    }
    const box = await this.get(name);
    await box.remove();
    this.#boxes.delete(name);
    if ((await this.#first?.catch(() => undefined)) === box) this.#first = undefined;
  }

  /** What was made here goes; what was here before stays, as does one whose changes nobody has brought out. */
  async close(): Promise<void> {
    await this.#first?.catch(() => {});
    const ends = this.all().map(async (box) => {
      try {
        await box[Symbol.asyncDispose]();
      } catch (error) {
        this.#options.report(error instanceof Error ? error : new Error(String(error)));
      }
    });
    await Promise.all(ends);
    this.#boxes.clear();
  }

  /** A sandbox that the human named is used again, and stays. */
  async #firstOne(): Promise<Sandbox> {
    const { spec } = this.#options.rules;
    const made = async (): Promise<Sandbox> => {
      if (spec.name === undefined) return await this.#make({ ...camelled(spec), ephemeral: true });
      const box = await this.#make({ ...camelled(spec), reuse: true });
      await box.ensureRunning();
      return box;
    };
    this.#first ??= made().catch((error: unknown) => {
      this.#first = undefined;
      throw error;
    });
    return await this.#first;
  }

  async #make(options: CreateOptions): Promise<Sandbox> {
    const { client, approveDockerfile, signal } = this.#options;
    this.#making++;
    try {
      const box = await Sandbox.create({ ...options, approveDockerfile, signal }, { client });
      this.#boxes.set(box.name, box);
      return box;
    } finally {
      this.#making--;
    }
  }
}
