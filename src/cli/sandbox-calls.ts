/** The daemon's routes as the verbs call them: paths, types, and what may have been meant by a name that is not there. */

import { closest } from '../lib/closest.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import type { CreateInput, ExecInput } from '../protocol/requests.ts';
import type { ExecResultView, ExecView, SandboxView, StatsView, VerifyView } from '../protocol/views.ts';
import { DaemonClient, segment } from '../sdk/client.ts';

interface Cancel {
  readonly signal?: AbortSignal;
}

const all = '/v1/sandboxes';
const one = (box: string): string => `${all}/${segment(box)}`;
const execAt = (box: string, exec: string): string => `${one(box)}/execs/${segment(exec)}`;

export class SandboxCalls {
  readonly client: DaemonClient;

  constructor(client: DaemonClient = new DaemonClient()) {
    this.client = client;
  }

  async list(labels: readonly string[] = [], cancel: Cancel = {}): Promise<readonly SandboxView[]> {
    const query = { label: labels };
    const { sandboxes } = await this.client.json<{ sandboxes: SandboxView[] }>('GET', all, {
      query,
      ...cancel,
    });
    return sandboxes;
  }

  async get(box: string, cancel: Cancel = {}): Promise<SandboxView> {
    return await this.#of(box, this.client.json<SandboxView>('GET', one(box), cancel));
  }

  /** Resolves when it is accepted; `ready` waits for it. */
  async create(body: CreateInput, cancel: Cancel = {}): Promise<SandboxView> {
    return await this.client.json<SandboxView>('POST', all, { body, query: { wait: false }, ...cancel });
  }

  async ready(box: string, cancel: Cancel = {}): Promise<SandboxView> {
    return await this.client.json<SandboxView>('GET', `${one(box)}/ready`, cancel);
  }

  async change(
    box: string,
    verb: 'start' | 'stop' | 'pause' | 'resume' | 'ensure',
    body: object = {},
    cancel: Cancel = {},
  ): Promise<SandboxView> {
    return await this.#of(
      box,
      this.client.json<SandboxView>('POST', `${one(box)}/${verb}`, { body, ...cancel }),
    );
  }

  async remove(box: string, query: { readonly force?: boolean; readonly wait?: boolean }): Promise<void> {
    await this.#of(box, this.client.json('DELETE', one(box), { query }));
  }

  async stats(box: string, cancel: Cancel = {}): Promise<StatsView> {
    return await this.#of(box, this.client.json<StatsView>('GET', `${one(box)}/stats`, cancel));
  }

  async verify(box: string, cancel: Cancel = {}): Promise<VerifyView> {
    return await this.#of(box, this.client.json<VerifyView>('GET', `${one(box)}/verify`, cancel));
  }

  async exec(box: string, body: ExecInput, cancel: Cancel = {}): Promise<ExecView> {
    return await this.#of(box, this.client.json<ExecView>('POST', `${one(box)}/execs`, { body, ...cancel }));
  }

  async execs(box: string, cancel: Cancel = {}): Promise<readonly ExecView[]> {
    const path = `${one(box)}/execs`;
    return (await this.#of(box, this.client.json<{ execs: ExecView[] }>('GET', path, cancel))).execs;
  }

  async wait(box: string, exec: string, cancel: Cancel = {}): Promise<ExecResultView> {
    return await this.client.json<ExecResultView>('GET', `${execAt(box, exec)}/wait`, cancel);
  }

  async killExec(box: string, exec: string, body: { readonly grace_ms?: number }): Promise<ExecView> {
    return await this.client.json<ExecView>('POST', `${execAt(box, exec)}/kill`, { body });
  }

  async signalExec(box: string, exec: string, signal: string): Promise<ExecView> {
    return await this.client.json<ExecView>('POST', `${execAt(box, exec)}/signal`, { body: { signal } });
  }

  async *logs(
    box: string,
    exec: string,
    query: { readonly stream: 'stdout' | 'stderr' | 'output'; readonly follow?: boolean },
    { signal }: Cancel = {},
  ): AsyncGenerator<Buffer> {
    const cancel = signal === undefined ? {} : { signal };
    const answer = await this.client.open('GET', `${execAt(box, exec)}/logs`, { query, ...cancel });
    const stop = (): void => void answer.destroy();
    signal?.addEventListener('abort', stop, { once: true });
    try {
      yield* answer as AsyncIterable<Buffer>;
    } catch (error) {
      if (signal?.aborted !== true) throw error;
    } finally {
      signal?.removeEventListener('abort', stop);
    }
  }

  close(): void {
    this.client.close();
  }

  async #of<T>(box: string, call: Promise<T>): Promise<T> {
    try {
      return await call;
    } catch (error) {
      throw isSallyportError(error, 'sandbox_not_found') ? await this.#withSuggestion(box, error) : error;
    }
  }

  async #withSuggestion(box: string, error: SallyportError): Promise<SallyportError> {
    const names = (await this.list().catch(() => [])).map(({ name }) => name);
    const meant = closest(box, names);
    if (meant === undefined) return error;
    return new SallyportError('sandbox_not_found', `${error.message}; did you mean ${meant}?`, {
      details: { ...error.details, meant },
      advice: error.advice,
      cause: error,
    });
  }
}
