/** How the latest creates ended. One that failed and was ephemeral is gone at once, but its maker still wants to know why. */

import type { SandboxSurface } from './surface.ts';

const mostRemembered = 256;

export class RecentCreates {
  readonly #creates = new Map<string, { readonly sandbox: SandboxSurface; readonly ready: Promise<void> }>();

  add(sandbox: SandboxSurface): void {
    const ready = sandbox.ready();
    ready.catch(() => {});
    this.#creates.set(sandbox.id, { sandbox, ready });
    const [oldest] = this.#creates.keys();
    if (this.#creates.size > mostRemembered && oldest !== undefined) this.#creates.delete(oldest);
  }

  find(id: string): { readonly sandbox: SandboxSurface; readonly ready: Promise<void> } | undefined {
    return this.#creates.get(id);
  }
}
