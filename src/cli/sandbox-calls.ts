/** The daemon's routes as the verbs call them: paths, types, and what may have been meant by a name that is not there. */

import { closest } from '../lib/closest.ts';
import type { Progress } from '../lib/progress.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import type { CreateInput, ExecInput, NetChangeInput } from '../protocol/requests.ts';
import type {
  ExecResultView,
  ExecView,
  NetView,
  PortView,
  PreviewView,
  ProvisionSourceView,
  SandboxView,
  StatsView,
  StoppedView,
  VerifyView,
  WorkspaceScanView,
} from '../protocol/views.ts';
import { DaemonClient, segment } from '../sdk/client.ts';
import { type ProgressLine, progressLine } from './progress-line.ts';

interface Cancel {
  readonly signal?: AbortSignal;
}

const all = '/v1/sandboxes';
const one = (box: string): string => `${all}/${segment(box)}`;
const execAt = (box: string, exec: string): string => `${one(box)}/execs/${segment(exec)}`;

/** An engine that has to be started first takes its time: then it is said what is done. */
function engineProgress(): Progress {
  let line: ProgressLine | undefined;
  return (event) => {
    line ??= progressLine();
    if (event.step === 'engine-ready') line.done();
    else line.report(event);
  };
}

export class SandboxCalls {
  readonly client: DaemonClient;

  constructor(client: DaemonClient = new DaemonClient({ onProgress: engineProgress() })) {
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
    return await this.client.createSandbox<SandboxView>(body, { query: { wait: false }, ...cancel });
  }

  async ready(box: string, cancel: Cancel = {}): Promise<SandboxView> {
    return await this.client.json<SandboxView>('GET', `${one(box)}/ready`, cancel);
  }

  async change(
    box: string,
    verb: 'start' | 'pause' | 'resume' | 'ensure',
    body: object = {},
    cancel: Cancel = {},
  ): Promise<SandboxView> {
    return await this.#of(
      box,
      this.client.json<SandboxView>('POST', `${one(box)}/${verb}`, { body, ...cancel }),
    );
  }

  async stop(
    box: string,
    body: { readonly grace_ms?: number } = {},
    cancel: Cancel = {},
  ): Promise<StoppedView> {
    return await this.#of(
      box,
      this.client.json<StoppedView>('POST', `${one(box)}/stop`, { body, ...cancel }),
    );
  }

  /** With `scan`: what it planted, unless nothing is scanned. */
  async remove(
    box: string,
    query: { readonly force?: boolean; readonly wait?: boolean; readonly scan?: boolean },
    cancel: Cancel = {},
  ): Promise<WorkspaceScanView | undefined> {
    return await this.#of(
      box,
      this.client.json<WorkspaceScanView | undefined>('DELETE', one(box), { query, ...cancel }),
    );
  }

  async stats(box: string, cancel: Cancel = {}): Promise<StatsView> {
    return await this.#of(box, this.client.json<StatsView>('GET', `${one(box)}/stats`, cancel));
  }

  async verify(box: string, cancel: Cancel = {}): Promise<VerifyView> {
    return await this.#of(box, this.client.json<VerifyView>('GET', `${one(box)}/verify`, cancel));
  }

  async scan(box: string, cancel: Cancel = {}): Promise<WorkspaceScanView> {
    return await this.#of(
      box,
      this.client.json<WorkspaceScanView>('GET', `${one(box)}/workspace-scan`, cancel),
    );
  }

  async net(box: string, cancel: Cancel = {}): Promise<NetView> {
    return await this.#of(box, this.client.json<NetView>('GET', `${one(box)}/net`, cancel));
  }

  async changeNet(box: string, body: NetChangeInput, cancel: Cancel = {}): Promise<NetView> {
    return await this.#of(box, this.client.json<NetView>('POST', `${one(box)}/net`, { body, ...cancel }));
  }

  async ports(box: string, cancel: Cancel = {}): Promise<readonly PortView[]> {
    const call = this.client.json<{ ports: PortView[] }>('GET', `${one(box)}/ports`, cancel);
    return (await this.#of(box, call)).ports;
  }

  async publish(box: string, port: string, cancel: Cancel = {}): Promise<PortView> {
    return await this.#of(
      box,
      this.client.json<PortView>('POST', `${one(box)}/ports`, { body: { port }, ...cancel }),
    );
  }

  async unpublish(box: string, host: number, cancel: Cancel = {}): Promise<void> {
    await this.#of(box, this.client.json('DELETE', `${one(box)}/ports/${host}`, cancel));
  }

  async openPreview(
    box: string,
    body: { readonly port: number; readonly path?: string; readonly ttl_ms?: number },
    cancel: Cancel = {},
  ): Promise<PreviewView> {
    return await this.#of(
      box,
      this.client.json<PreviewView>('POST', `${one(box)}/previews`, { body, ...cancel }),
    );
  }

  async previews(box: string, cancel: Cancel = {}): Promise<readonly PreviewView[]> {
    const path = `${one(box)}/previews`;
    return (await this.#of(box, this.client.json<{ previews: PreviewView[] }>('GET', path, cancel))).previews;
  }

  async endPreview(box: string, id: string, cancel: Cancel = {}): Promise<void> {
    await this.#of(box, this.client.json('DELETE', `${one(box)}/previews/${segment(id)}`, cancel));
  }

  async provisionSource(box: string, cancel: Cancel = {}): Promise<ProvisionSourceView> {
    const path = `${one(box)}/provision-source`;
    return await this.#of(box, this.client.json<ProvisionSourceView>('GET', path, cancel));
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
    cancel: Cancel = {},
  ): AsyncGenerator<Buffer> {
    yield* this.#bytes(`${execAt(box, exec)}/logs`, query, cancel);
  }

  /** Of a service; `tail` counts lines. */
  async *serviceLogs(
    box: string,
    service: string,
    query: { readonly tail?: number; readonly follow?: boolean },
    cancel: Cancel = {},
  ): AsyncGenerator<Buffer> {
    yield* this.#bytes(`${one(box)}/services/${encodeURIComponent(service)}/logs`, query, cancel);
  }

  async *#bytes(
    path: string,
    query: Readonly<Record<string, string | number | boolean>>,
    { signal }: Cancel,
  ): AsyncGenerator<Buffer> {
    const cancel = signal === undefined ? {} : { signal };
    const answer = await this.client.open('GET', path, { query, ...cancel });
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
