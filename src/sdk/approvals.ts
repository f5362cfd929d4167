/** Questions of the guard that wait for a person. Asking takes the daemon's socket; answering takes the approver's token as well. */

import { isSallyportError } from '../protocol/errors.ts';
import type { AnswerInput, ApprovalView, AskInput } from '../protocol/guard.ts';
import { type Camelled, camelled, snaked } from './case.ts';
import { type ConnectionOptions, DaemonClient, segment } from './client.ts';

export type Approval = Camelled<ApprovalView>;

const all = '/v1/approvals';
const one = (id: string): string => `${all}/${segment(id)}`;
/** As `protocol/guard.ts` has it, without its schemas. */
const approverHeader = 'sallyport-approver';

export class Approvals {
  readonly #client: DaemonClient;

  constructor(connection: ConnectionOptions & { readonly client?: DaemonClient } = {}) {
    this.#client = connection.client ?? new DaemonClient(connection);
  }

  async list(
    options: { readonly all?: boolean; readonly signal?: AbortSignal } = {},
  ): Promise<readonly Approval[]> {
    const query = { all: options.all ?? false };
    const { approvals } = await this.#client.json<{ approvals: ApprovalView[] }>('GET', all, {
      query,
      ...cancel(options.signal),
    });
    return approvals.map((approval) => camelled(approval));
  }

  async get(id: string, signal?: AbortSignal): Promise<Approval> {
    return camelled(await this.#client.json<ApprovalView>('GET', one(id), cancel(signal)));
  }

  /** `token` is the content of the file `approver-token` in the state folder: an approver has it, who asks should not. */
  async answer(
    id: string,
    answer: Camelled<AnswerInput>,
    token: string,
    signal?: AbortSignal,
  ): Promise<Approval> {
    const view = await this.#client.json<ApprovalView>('POST', `${one(id)}/answer`, {
      body: snaked(answer),
      headers: { [approverHeader]: token },
      ...cancel(signal),
    });
    return camelled(view);
  }

  /**
   * Asks, and waits until it is decided. `pending` is called when it waits for somebody. Giving up withdraws the question, and
   * so does the end of this program.
   */
  async ask(
    question: Pick<Camelled<AskInput>, 'command' | 'argv' | 'cwd' | 'session' | 'expiresInMs'>,
    options: { readonly signal?: AbortSignal; readonly pending?: (approval: Approval) => void } = {},
  ): Promise<Approval> {
    const { signal, pending } = options;
    const asked = await this.#client.json<ApprovalView>('POST', all, {
      body: snaked(question),
      ...cancel(signal),
    });
    if (asked.state !== 'pending') return camelled(asked);
    pending?.(camelled(asked));
    try {
      return camelled(
        await this.#client.json<ApprovalView>('GET', `${one(asked.id)}/decision`, cancel(signal)),
      );
    } catch (error) {
      // With the daemon the question is gone, and a question that is gone is a no.
      if (isSallyportError(error, 'daemon_gone') || isSallyportError(error, 'approval_not_found')) {
        return camelled({ ...asked, state: 'denied', by: 'daemon' });
      }
      throw error;
    }
  }

  disconnect(): void {
    this.#client.close();
  }
}

const cancel = (signal: AbortSignal | undefined): { readonly signal?: AbortSignal } =>
  signal === undefined ? {} : { signal };
