/** The audit log: what ran, where, why and how it ended; and whether all of it is still there. */

import type { AuditLineView, AuditType, AuditVerdict } from '../protocol/audit.ts';
import { type Camelled, camelled } from './case.ts';
import { type ConnectionOptions, DaemonClient } from './client.ts';
import { readSse } from './sse.ts';

export type AuditLine = Camelled<AuditLineView>;

export interface AuditSearch {
  /** A moment, a duration ago (`2h`), or a time. */
  readonly since?: Date | string;
  /** Its name. */
  readonly sandbox?: string;
  readonly type?: AuditType;
  readonly signal?: AbortSignal;
}

const path = '/v1/audit';

export class Audit {
  readonly #client: DaemonClient;

  constructor(connection: ConnectionOptions & { readonly client?: DaemonClient } = {}) {
    this.#client = connection.client ?? new DaemonClient(connection);
  }

  /** Oldest first, as far as it is written now. */
  async *search({ since, sandbox, type, signal }: AuditSearch = {}): AsyncGenerator<AuditLine> {
    const answer = await this.#client.open('GET', path, {
      query: {
        ...(since === undefined ? {} : { since: since instanceof Date ? since.toISOString() : since }),
        ...(sandbox === undefined ? {} : { sandbox }),
        ...(type === undefined ? {} : { type }),
      },
      ...(signal === undefined ? {} : { signal }),
    });
    try {
      for await (const { data } of readSse(answer)) yield camelled(JSON.parse(data) as AuditLineView);
    } finally {
      answer.destroy();
    }
  }

  /** With `head`, the hash that an earlier look told, the line of that hash must still be there. */
  async verify(
    options: { readonly head?: string; readonly signal?: AbortSignal } = {},
  ): Promise<AuditVerdict> {
    const { head, signal } = options;
    return await this.#client.json<AuditVerdict>('GET', `${path}/verify`, {
      query: head === undefined ? {} : { head },
      ...(signal === undefined ? {} : { signal }),
    });
  }

  disconnect(): void {
    this.#client.close();
  }
}
