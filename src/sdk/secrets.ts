/** Secrets of this machine, for the gate. Values go to the daemon and do not come back. */

import type { SecretBody, SecretCheckView, SecretView } from '../protocol/secrets.ts';
import { type Camelled, camelled, snaked } from './case.ts';
import { type ConnectionOptions, DaemonClient, segment } from './client.ts';

export type SecretInfo = Camelled<SecretView>;
export type SecretCheck = Camelled<SecretCheckView>;
export type SecretOptions = Camelled<SecretBody>;

const all = '/v1/secrets';
const one = (name: string): string => `${all}/${segment(name)}`;

export class Secrets {
  readonly #client: DaemonClient;

  constructor(connection: ConnectionOptions & { readonly client?: DaemonClient } = {}) {
    this.#client = connection.client ?? new DaemonClient(connection);
  }

  /** What is left out of one that is there stays as it was; a new value counts from the next request on. */
  async set(name: string, options: SecretOptions, signal?: AbortSignal): Promise<SecretInfo> {
    const body = snaked(options);
    return camelled(await this.#client.json<SecretView>('PUT', one(name), { body, ...cancel(signal) }));
  }

  async list(signal?: AbortSignal): Promise<readonly SecretInfo[]> {
    const { secrets } = await this.#client.json<{ secrets: SecretView[] }>('GET', all, cancel(signal));
    return secrets.map((secret) => camelled(secret));
  }

  async remove(name: string, signal?: AbortSignal): Promise<void> {
    await this.#client.json('DELETE', one(name), cancel(signal));
  }

  /** Runs the command of a secret that has one. */
  /** `ask`: also of the service itself, where it is known how. */
  async check(
    name: string,
    signal?: AbortSignal,
    { ask = false }: { readonly ask?: boolean } = {},
  ): Promise<SecretCheck> {
    const options = { query: { ask }, ...cancel(signal) };
    return camelled(await this.#client.json<SecretCheckView>('GET', `${one(name)}/check`, options));
  }

  disconnect(): void {
    this.#client.close();
  }
}

const cancel = (signal: AbortSignal | undefined): { readonly signal?: AbortSignal } =>
  signal === undefined ? {} : { signal };
