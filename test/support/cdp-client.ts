/** As much of the Chrome DevTools Protocol as drives one page: calls, and waiting for what is announced. */

import { once } from 'node:events';
import { onTestFinished } from 'vitest';
import WebSocket from 'ws';

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly sessionId?: string;
  readonly params?: unknown;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly message: string };
}

export class CdpClient {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, (message: Message) => void>();
  readonly #listeners = new Set<(message: Message) => void>();
  #lost: ((error: Error) => void)[] = [];
  #last = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data) => {
      const message = JSON.parse(String(data)) as Message;
      if (message.id !== undefined) this.#waiting.get(message.id)?.(message);
      for (const listener of this.#listeners) listener(message);
    });
    socket.on('close', () => {
      for (const lose of this.#lost) lose(new Error('the browser closed the connection'));
      this.#lost = [];
    });
  }

  static async connect(endpoint: string): Promise<CdpClient> {
    const socket = new WebSocket(endpoint);
    await once(socket, 'open');
    onTestFinished(() => socket.terminate());
    return new CdpClient(socket);
  }

  async call(method: string, params: object = {}, sessionId?: string): Promise<Record<string, unknown>> {
    const id = ++this.#last;
    const answer = new Promise<Message>((resolve, reject) => {
      this.#waiting.set(id, resolve);
      this.#lost.push(reject);
    });
    this.#socket.send(
      JSON.stringify({ id, method, params, ...(sessionId === undefined ? {} : { sessionId }) }),
    );
    const { result, error } = await answer;
    this.#waiting.delete(id);
    if (error !== undefined) throw new Error(`${method}: ${error.message}`);
    return result ?? {};
  }

  /** Listens from now on. */
  announced(method: string, sessionId: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const listener = (message: Message): void => {
        if (message.method !== method || message.sessionId !== sessionId) return;
        this.#listeners.delete(listener);
        resolve();
      };
      this.#listeners.add(listener);
      this.#lost.push(reject);
    });
  }

  /** A page of its own that has loaded. */
  async openPage(url: string): Promise<CdpPage> {
    const { targetId } = await this.call('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await this.call('Target.attachToTarget', { targetId, flatten: true });
    const page = new CdpPage(this, String(sessionId));
    await page.call('Page.enable');
    const loaded = this.announced('Page.loadEventFired', String(sessionId));
    await page.call('Page.navigate', { url });
    await loaded;
    return page;
  }
}

export class CdpPage {
  readonly #client: CdpClient;
  readonly #session: string;

  constructor(client: CdpClient, session: string) {
    this.#client = client;
    this.#session = session;
  }

  async call(method: string, params: object = {}): Promise<Record<string, unknown>> {
    return await this.#client.call(method, params, this.#session);
  }

  /** What the expression, or the promise that it is, comes to. */
  async evaluate(expression: string): Promise<unknown> {
    const { result, exceptionDetails } = await this.call('Runtime.evaluate', {
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails));
    return (result as { readonly value?: unknown }).value;
  }
}
