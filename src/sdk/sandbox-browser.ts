/**
 * Chromium in a sandbox, driven from this machine: `box.browser`. It is a command like any other, and its DevTools are a
 * published port like any other; nothing here goes round the gate.
 */

import { browserHome, gateFolder } from '../protocol/box.ts';
import { SallyportError } from '../protocol/errors.ts';
import {
  type BrowserOptions,
  browserCommand,
  devToolsPath,
  devToolsPort,
  isBrowser,
} from './browser-command.ts';
import type { ExecInfo } from './outcome.ts';
import type { Sandbox } from './sandbox.ts';

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
  /** Of this machine; absent: a free one. */
  readonly port?: number;
  readonly signal?: AbortSignal;
}

type Cancel = Pick<BrowserStart, 'signal'>;

export class SandboxBrowser {
  readonly #box: Sandbox;

  constructor(box: Sandbox) {
    this.#box = box;
  }

  /** Resolves when it can be driven. One that runs already is used as it is. */
  async start(options: BrowserStart = {}): Promise<BrowserEndpoint> {
    const cancel = cancelOf(options);
    const exec = (await this.#running(cancel)) ?? (await this.#started(options, cancel));
    const path = await this.#path(exec.id, cancel);
    const host = await this.#published(options.port, cancel);
    const place = `127.0.0.1:${host}`;
    return { endpoint: `ws://${place}${path}`, url: `http://${place}`, port: host, execId: exec.id };
  }

  /** Also takes the port back. None that runs is no error. */
  async stop(options: Cancel = {}): Promise<void> {
    const cancel = cancelOf(options);
    for (const { id } of await this.#all(cancel)) await this.#kill(id);
    for (const { box, host } of await this.#box.ports.list(cancel)) {
      if (box === devToolsPort) await this.#box.ports.unpublish(host, cancel);
    }
  }

  /** Of two that were started at once the older one stays, for both callers. */
  async #started(options: BrowserStart, cancel: Cancel): Promise<Pick<ExecInfo, 'id'>> {
    const services = this.#box.info.services.map(({ name }) => name);
    const argv = browserCommand(options, services);
    const reason = 'a browser to be driven from outside';
    // There is the database that has it trust the sandbox's CA, where the gate opens TLS.
    const envs = { HOME: `${this.#box.info.user.home}/${gateFolder}/${browserHome}` };
    const own = await this.#box.spawn(argv, { background: true, timeoutMs: 0, reason, envs, ...cancel });
    own.disconnect();
    const first = await this.#running(cancel);
    if (first === undefined || first.id === own.id) return own;
    await this.#kill(own.id);
    return first;
  }

  async #path(exec: string, cancel: Cancel): Promise<string> {
    let said = '';
    for await (const chunk of this.#box.logs(exec, { stream: 'stderr', follow: true, ...cancel })) {
      said += chunk.toString('utf8');
      const path = devToolsPath(said);
      if (path !== undefined) return path;
      if (said.includes('Cannot start http server for devtools')) break;
    }
    await this.#kill(exec);
    const { name } = this.#box;
    const refused = (await this.#box.execs(cancel)).find(
      ({ id, state }) => id === exec && state === 'refused',
    );
    const why = refused?.error?.message ?? 'it does not listen';
    throw new SallyportError('browser_failed', `no browser in sandbox ${name}: ${why}`, {
      details: { sandbox: name, exec, said: said.slice(-500) },
      ...(refused === undefined ? { advice: `\`sally logs ${name} ${exec}\` shows what it said.` } : {}),
    });
  }

  /** Of two callers that published it at once both use the first. */
  async #published(wanted: number | undefined, cancel: Cancel): Promise<number> {
    const { ports } = this.#box;
    const known = async (): Promise<number | undefined> =>
      (await ports.list(cancel)).find(
        ({ box, host }) => box === devToolsPort && (wanted === undefined || host === wanted),
      )?.host;
    const before = await known();
    if (before !== undefined) return before;
    const port = wanted === undefined ? devToolsPort : `${wanted}:${devToolsPort}`;
    const { host: own } = await ports.publish(port, cancel);
    const first = (await known()) ?? own;
    if (first !== own) await ports.unpublish(own, cancel);
    return first;
  }

  async #running(cancel: Cancel): Promise<ExecInfo | undefined> {
    return (await this.#all(cancel))[0];
  }

  async #all(cancel: Cancel): Promise<readonly ExecInfo[]> {
    const all = (await this.#box.execs(cancel)).filter(
      ({ state, argv }) => state === 'running' && isBrowser(argv),
    );
    return [...all].sort((a, b) => a.startedAt.localeCompare(b.startedAt) || a.id.localeCompare(b.id));
  }

  async #kill(exec: string): Promise<void> {
    const process = this.#box.attach(exec);
    await process.kill().catch(() => {});
    process.disconnect();
  }
}

const cancelOf = ({ signal }: Cancel): Cancel => (signal === undefined ? {} : { signal });
