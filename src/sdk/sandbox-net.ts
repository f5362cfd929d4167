/** What a sandbox may reach, as programs see and change it: `box.net`. */

import type { ApprovalView } from '../protocol/guard.ts';
import type { EgressLineView, NetView } from '../protocol/views.ts';
import type { Approval } from './approvals.ts';
import { type Camelled, camelled } from './case.ts';
import { type DaemonClient, segment } from './client.ts';
import { readSse } from './sse.ts';

export type NetInfo = Camelled<NetView>;
export type EgressDecision = Camelled<EgressLineView>;

interface Cancel {
  readonly signal?: AbortSignal;
}

export class SandboxNet {
  readonly #client: DaemonClient;
  readonly #path: string;

  constructor(client: DaemonClient, sandbox: string) {
    this.#client = client;
    this.#path = `/v1/sandboxes/${segment(sandbox)}/net`;
  }

  async info(options: Cancel = {}): Promise<NetInfo> {
    return camelled(await this.#client.json<NetView>('GET', this.#path, options));
  }

  /** Rules like `x.com`, `*.x.com:8443` or `db.x.com:5432/tcp`. They hold when this resolves. */
  async allow(rules: string | readonly string[], options: Cancel = {}): Promise<NetInfo> {
    return await this.#change({ allow: [rules].flat() }, options);
  }

  /**
   * Asks a person to allow them: `sally approvals` shows the question, `sally approve` answers it, and the rules hold from then on.
   * Waits so long for the answer; one that is still `pending` then can come later.
   */
  async request(
    rules: string | readonly string[],
    options: Cancel & {
      readonly reason?: string;
      readonly waitMs?: number;
      readonly pending?: (approval: Approval) => void;
    } = {},
  ): Promise<Approval> {
    const { signal, reason, waitMs = 300_000, pending } = options;
    const asked = await this.#client.json<ApprovalView>('POST', `${this.#path}/requests`, {
      body: { allow: [rules].flat(), ...(reason === undefined ? {} : { reason }) },
      ...(signal === undefined ? {} : { signal }),
    });
    pending?.(camelled(asked));
    const patience = AbortSignal.timeout(waitMs);
    const path = `/v1/approvals/${segment(asked.id)}/decision`;
    try {
      const until = signal === undefined ? patience : AbortSignal.any([signal, patience]);
      const query = { keep: true };
      return camelled(await this.#client.json<ApprovalView>('GET', path, { query, signal: until }));
    } catch (error) {
      if (signal?.aborted !== true && patience.aborted) return camelled(asked);
      if (signal?.aborted === true) {
        await this.#client.json('DELETE', `/v1/approvals/${segment(asked.id)}`).catch(() => {});
      }
      throw error;
    }
  }

  /** Wins over every allow, and closes what is open. */
  async deny(rules: string | readonly string[], options: Cancel = {}): Promise<NetInfo> {
    return await this.#change({ deny: [rules].flat() }, options);
  }

  /** Every decision that is kept, then, with `follow`, what comes until the signal fires. */
  async *log(options: Cancel & { readonly follow?: boolean } = {}): AsyncGenerator<EgressDecision> {
    const { signal, follow = false } = options;
    const cancel = signal === undefined ? {} : { signal };
    const answer = await this.#client.open('GET', `${this.#path}/log`, { query: { follow }, ...cancel });
    const stop = (): void => void answer.destroy();
    signal?.addEventListener('abort', stop, { once: true });
    try {
      for await (const { data } of readSse(answer)) yield camelled(JSON.parse(data) as EgressLineView);
    } catch (error) {
      if (signal?.aborted !== true) throw error;
    } finally {
      signal?.removeEventListener('abort', stop);
      answer.destroy();
    }
  }

  async #change(
    body: { allow?: readonly string[]; deny?: readonly string[] },
    cancel: Cancel,
  ): Promise<NetInfo> {
    return camelled(await this.#client.json<NetView>('POST', this.#path, { body, ...cancel }));
  }
}
