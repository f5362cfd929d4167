/**
 * Sockets of the host that a sandbox may use, by a listener of porter inside: the user's SSH agent.
 *
 * porter listens at a fixed place, and each connection that it accepts becomes one to the agent. The agent is looked at anew
 * each time, so one that begins later, or begins again at the same place, is used. Nothing of the host is mounted, so it works
 * with every engine and for every user inside.
 */

import { lstat } from 'node:fs/promises';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Porter } from '../porter/porter.ts';
import type { Tunnel } from '../porter/tunnel.ts';
import { AgentRequests } from './agent-requests.ts';
import type { SandboxRecord } from './records.ts';

/** In memory and empty at each start, so that no file of an earlier start is in the way. */
export const agentSocketInside = '/tmp/.sallyport-ssh-agent';

const mostConnections = 32;
/** A connection to the sandbox waits for this. */
const answerMs = 20_000;

export interface ForwardHost {
  readonly record: () => Pick<SandboxRecord, 'plan'>;
  /** The daemon's SSH_AUTH_SOCK, and whose it must be. */
  readonly agent: { readonly path: string | undefined; readonly uid: number };
  /** Said once, and again only after it was different. */
  readonly note: (code: string, message: string) => void;
  readonly report: (what: string, error: unknown) => void;
}

export const wantsAgent = ({ sockets = [] }: SandboxRecord['plan']): boolean =>
  sockets.some(({ id }) => id === 'ssh-agent');

export class SocketForwards {
  readonly #host: ForwardHost;
  #open = 0;
  #problem: string | undefined;

  constructor(host: ForwardHost) {
    this.#host = host;
  }

  /** For every connection to porter: goes on with the listener that is there, or makes it. */
  async connected(porter: Porter): Promise<void> {
    if (!wantsAgent(this.#host.record().plan)) return;
    try {
      await this.#listen(porter);
      this.#sayIfAny(await agentProblem(this.#host.agent));
    } catch (error) {
      // The sandbox is of use without it; `verify` shows that it is missing.
      this.#host.report('forward the SSH agent', error);
    }
  }

  async #listen(porter: Porter): Promise<void> {
    const take = (tunnel: Tunnel): void => void this.#forward(tunnel);
    const known = (await porter.listeners()).find(
      ({ kind, address }) => kind === 'path' && address === agentSocketInside,
    );
    if (known !== undefined) {
      porter.resumeListener(known, take);
      return;
    }
    await porter.listen({ path: agentSocketInside }, take);
    await porter.files.chmod(agentSocketInside, 0o600, { signal: AbortSignal.timeout(answerMs) });
  }

  async #forward(tunnel: Tunnel): Promise<void> {
    if (this.#open >= mostConnections) {
      tunnel.destroy();
      return;
    }
    this.#open++;
    tunnel.once('close', () => {
      this.#open--;
    });
    const { agent } = this.#host;
    const problem = await agentProblem(agent);
    this.#sayIfAny(problem);
    if (problem !== undefined || agent.path === undefined || tunnel.destroyed) {
      tunnel.destroy();
      return;
    }
    const socket = connect({ path: agent.path, allowHalfOpen: true });
    socket.once('connect', () => this.#say(undefined));
    socket.once('error', (error) => this.#say(`it does not answer (${error.message})`));
    join(tunnel, socket);
  }

  #sayIfAny(problem: string | undefined): void {
    // That nothing is wrong with it is known when it answers.
    if (problem !== undefined) this.#say(problem);
  }

  #say(problem: string | undefined): void {
    if (problem === this.#problem) return;
    this.#problem = problem;
    if (problem === undefined) this.#host.note('ssh_agent_forwarded', 'the SSH agent is forwarded');
    else this.#host.note('ssh_agent_missing', `the SSH agent is not forwarded: ${problem}`);
  }
}

/** The end of one side is passed on; the loss of one is the loss of all. */
function join(tunnel: Tunnel, socket: Duplex): void {
  const requests = new AgentRequests();
  const all = [tunnel, requests, socket];
  for (const stream of all) {
    const dropAll = (): void => {
      for (const other of all) other.destroy();
    };
    stream.once('error', dropAll);
    if (stream !== requests) stream.once('close', dropAll);
  }
  tunnel.pipe(requests).pipe(socket).pipe(tunnel);
}

/** SECURITY: only a real socket of the user's own. A link could be pointed elsewhere by whoever may write beside it. */
async function agentProblem({ path, uid }: ForwardHost['agent']): Promise<string | undefined> {
  if (path === undefined || path === '') return 'SSH_AUTH_SOCK was not set when the daemon was started';
  const facts = await lstat(path).catch(() => undefined);
  if (facts === undefined) return `there is nothing at ${path}`;
  if (facts.isSymbolicLink()) return `${path} is a link`;
  if (!facts.isSocket()) return `${path} is no socket`;
  return facts.uid === uid ? undefined : `${path} belongs to another user`;
}
