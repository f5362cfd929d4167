/** The ports of a sandbox that this machine can reach: `box.ports`. */

import type { PortView, PreviewView } from '../protocol/views.ts';
import { type Camelled, camelled } from './case.ts';
import { type DaemonClient, segment } from './client.ts';

export type PublishedPort = Camelled<PortView>;
export type Preview = Camelled<PreviewView>;
/** With the link that works once. */
export type NewPreview = Preview & { readonly url: string; readonly urlExpiresAt: string };

export interface PreviewOptions {
  /** Where the browser begins. */
  readonly path?: string;
  /** So long a browser that came by the link gets in; 12 hours if it is not said. */
  readonly ttlMs?: number;
  readonly signal?: AbortSignal;
}

interface Cancel {
  readonly signal?: AbortSignal;
}

export class SandboxPorts {
  readonly #client: DaemonClient;
  readonly #path: string;
  readonly #previews: string;

  constructor(client: DaemonClient, sandbox: string) {
    this.#client = client;
    this.#path = `/v1/sandboxes/${segment(sandbox)}/ports`;
    this.#previews = `/v1/sandboxes/${segment(sandbox)}/previews`;
  }

  async list(options: Cancel = {}): Promise<readonly PublishedPort[]> {
    const { ports } = await this.#client.json<{ ports: PortView[] }>('GET', this.#path, options);
    return ports.map((port) => camelled(port));
  }

  /** `3000`, `'8080:3000'` or `'127.0.0.1:8080:3000'`, host first. Without a port of the host a free one is chosen. */
  async publish(port: number | string, options: Cancel = {}): Promise<PublishedPort> {
    return camelled(await this.#client.json<PortView>('POST', this.#path, { body: { port }, ...options }));
  }

  /** By its number on this machine. */
  async unpublish(host: number, options: Cancel = {}): Promise<void> {
    await this.#client.json('DELETE', `${this.#path}/${host}`, options);
  }

  /** A link to a port inside, for one browser of this machine. Works once; nobody else gets in. */
  async preview(port: number, { path, ttlMs, signal }: PreviewOptions = {}): Promise<NewPreview> {
    const body = {
      port,
      ...(path === undefined ? {} : { path }),
      ...(ttlMs === undefined ? {} : { ttl_ms: ttlMs }),
    };
    const options = signal === undefined ? { body } : { body, signal };
    return camelled(await this.#client.json<NewPreviewView>('POST', this.#previews, options));
  }

  async previews(options: Cancel = {}): Promise<readonly Preview[]> {
    const { previews } = await this.#client.json<{ previews: PreviewView[] }>('GET', this.#previews, options);
    return previews.map((preview) => camelled(preview));
  }

  /** Its links, its sessions and what is connected are over. */
  async endPreview(id: string, options: Cancel = {}): Promise<void> {
    await this.#client.json('DELETE', `${this.#previews}/${segment(id)}`, options);
  }
}

type NewPreviewView = PreviewView & { url: string; url_expires_at: string };
