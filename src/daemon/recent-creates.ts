/**
 * How the latest creates ended. One that failed and was ephemeral is gone at once, but its maker still wants to know why.
 * Only what is answered is kept: a sandbox that was removed must not stay in memory with all its commands.
 */

import type { SandboxView } from '../protocol/views.ts';
import type { SandboxSurface } from './surface.ts';

const mostRemembered = 256;

export class RecentCreates {
  readonly #creates = new Map<string, Promise<SandboxView>>();

  add(sandbox: SandboxSurface): void {
    const ready = sandbox.ready().then(() => sandbox.view());
    ready.catch(() => {});
    this.#creates.set(sandbox.id, ready);
    const [oldest] = this.#creates.keys();
    if (this.#creates.size > mostRemembered && oldest !== undefined) this.#creates.delete(oldest);
  }

  /** Resolves with what it was when it was ready, or rejects with the reason why it never was. */
  find(id: string): Promise<SandboxView> | undefined {
    return this.#creates.get(id);
  }
}
