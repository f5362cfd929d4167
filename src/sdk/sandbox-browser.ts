/** Chromium in a sandbox, driven from this machine: `box.browser`. Its DevTools ask for a token, which the addresses contain. */

import type { BrowserInput } from '../protocol/requests.ts';
import type { BrowserView } from '../protocol/views.ts';
import { type DaemonClient, segment } from './client.ts';

export interface BrowserOptions {
  /** Size of the window in pixels (default: 1280 by 720). */
  readonly window?: { readonly width: number; readonly height: number };
  /** Name or path of Chromium inside (default: `chromium`). */
  readonly program?: string;
  /** More flags of Chromium. The flags that keep it from leaking stay in force. */
  readonly flags?: readonly string[];
}

export interface BrowserEndpoint {
  /** For a client of the Chrome DevTools Protocol: `chromium.connectOverCDP(endpoint)` in Playwright. */
  readonly endpoint: string;
  /** The same place for clients that ask by HTTP first. */
  readonly url: string;
  /** Of this machine. */
  readonly port: number;
  /** The command inside: `box.logs(execId)`. */
  readonly execId: string;
}

export interface BrowserStart extends BrowserOptions {
  /** Of this machine (default: a free one). */
  readonly port?: number;
  readonly signal?: AbortSignal;
}

export class SandboxBrowser {
  readonly #client: DaemonClient;
  readonly #path: string;

  constructor(client: DaemonClient, sandbox: string) {
    this.#client = client;
    this.#path = `/v1/sandboxes/${segment(sandbox)}/browser`;
  }

  /** Resolves when it can be driven. One that runs already is used as it is. */
  async start({ signal, flags, ...rest }: BrowserStart = {}): Promise<BrowserEndpoint> {
    const body: BrowserInput = { ...rest, ...(flags === undefined ? {} : { flags: [...flags] }) };
    const { endpoint, url, port, exec_id } = await this.#client.json<BrowserView>('POST', this.#path, {
      body,
      ...(signal === undefined ? {} : { signal }),
    });
    return { endpoint, url, port, execId: exec_id };
  }

  /** Also closes its port. None that runs is no error. */
  async stop({ signal }: Pick<BrowserStart, 'signal'> = {}): Promise<void> {
    await this.#client.json('DELETE', this.#path, signal === undefined ? {} : { signal });
  }
}
