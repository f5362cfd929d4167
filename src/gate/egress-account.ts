/**
 * What the gate did for one sandbox: every decision goes to the log and to who follows it, and to the daemon's events as
 * long as there are few. Code inside decides how many there are, so everything here is bounded.
 */

import type { EgressLineView, NetView } from '../protocol/views.ts';
import type { GateClient } from '../sandboxes/ports.ts';
import type { Outcome } from './contract.ts';

const mostDenied = 200;
const mostReached = 1000;
/** Events at once, and then so many a second. */
const burst = 30;
const perSecond = 2;
const mostWaiting = 10_000;

type DeniedHost = NetView['denied'][number];

export class EgressAccount {
  readonly #client: GateClient;
  readonly #denied = new Map<string, DeniedHost>();
  readonly #reached = new Set<string>();
  readonly #followers = new Set<(line: EgressLineView) => void>();
  #tokens = burst;
  #countedMs = performance.now();
  #skipped = 0;
  #logFailed = false;

  constructor(client: GateClient) {
    this.#client = client;
  }

  written(outcome: Outcome): void {
    const line = lineOf(outcome);
    this.#count(outcome);
    try {
      this.#client.log.append(line);
      this.#logFailed = false;
    } catch (error) {
      // A full disk stops no sandbox; it is said once.
      if (!this.#logFailed) this.#client.report('write the log of the gate', error);
      this.#logFailed = true;
    }
    for (const follower of this.#followers) follower(line);
    this.#tell(outcome, line);
  }

  denied(): readonly DeniedHost[] {
    return [...this.#denied.values()];
  }

  reached(): readonly string[] {
    return [...this.#reached].sort();
  }

  async *follow(options: {
    readonly follow: boolean;
    readonly signal: AbortSignal;
  }): AsyncGenerator<EgressLineView> {
    const { signal } = options;
    const waiting: EgressLineView[] = [];
    let wake = (): void => {};
    const take = (line: EgressLineView): void => {
      if (waiting.length < mostWaiting) waiting.push(line);
      wake();
    };
    if (options.follow) this.#followers.add(take);
    const onAbort = (): void => wake();
    signal.addEventListener('abort', onAbort);
    try {
      const before = await this.#client.log.read();
      // What came while the file was read is at its end already.
      const seen = new Set(before.slice(-waiting.length - 1).map((line) => JSON.stringify(line)));
      yield* before;
      while (options.follow && !signal.aborted) {
        const line = waiting.shift();
        if (line === undefined) {
          seen.clear();
          await new Promise<void>((resolve) => {
            wake = resolve;
            if (signal.aborted || waiting.length > 0) resolve();
          });
        } else if (!seen.has(JSON.stringify(line))) yield line;
      }
    } finally {
      this.#followers.delete(take);
      signal.removeEventListener('abort', onAbort);
    }
  }

  #count({ decision }: Outcome): void {
    const { host, port } = decision.attempt.destination;
    if (decision.allowed) {
      const text = ruleFor(decision.attempt);
      if (this.#reached.size < mostReached) this.#reached.add(text);
      return;
    }
    const key = `${host}:${port}`;
    const before = this.#denied.get(key);
    if (before === undefined && this.#denied.size >= mostDenied) return;
    const { code, reason, advice } = decision;
    this.#denied.set(key, { host, port, count: (before?.count ?? 0) + 1, code, reason, advice });
  }

  #tell({ decision }: Outcome, line: EgressLineView): void {
    const nowMs = performance.now();
    this.#tokens = Math.min(burst, this.#tokens + ((nowMs - this.#countedMs) / 1000) * perSecond);
    this.#countedMs = nowMs;
    if (this.#tokens < 1) {
      this.#skipped++;
      return;
    }
    this.#tokens--;
    const { entrance, host, port, bytes_out, bytes_in, duration_ms, status, error } = line;
    const facts = {
      entrance,
      host,
      port,
      bytes_out,
      bytes_in,
      duration_ms,
      skipped: this.#skipped,
      ...(status === undefined ? {} : { status }),
      ...(error === undefined ? {} : { error }),
    };
    this.#skipped = 0;
    try {
      if (decision.allowed) this.#client.tell({ type: 'egress.allowed', ...facts, rule: decision.rule });
      else {
        const { code, reason } = decision;
        this.#client.tell({ type: 'egress.denied', ...facts, code, reason });
      }
    } catch (failure) {
      this.#client.report('tell what the gate decided', failure);
    }
  }
}

/** The rule that would allow just this. */
function ruleFor({ destination: { host, port }, scheme }: Outcome['decision']['attempt']): string {
  const shown = host.includes(':') ? `[${host}]` : host;
  if (scheme === 'tcp') return `${shown}:${port}/tcp`;
  return port === 443 || port === 80 ? shown : `${shown}:${port}`;
}

function lineOf({ decision, bytesOut, bytesIn, durationMs, status, error }: Outcome): EgressLineView {
  const { entrance, scheme, destination, method, path } = decision.attempt;
  return {
    at: new Date().toISOString(),
    allowed: decision.allowed,
    entrance,
    scheme,
    host: destination.host,
    port: destination.port,
    ...(method === undefined ? {} : { method }),
    // SECURITY: a query may hold a secret, and a path may be as long as its sender likes.
    ...(path === undefined ? {} : { path: (path.split('?', 1)[0] ?? '').slice(0, 500) }),
    ...(decision.allowed
      ? { rule: decision.rule }
      : { code: decision.code, reason: decision.reason, advice: decision.advice }),
    bytes_out: bytesOut,
    bytes_in: bytesIn,
    duration_ms: Math.round(durationMs * 10) / 10,
    ...(status === undefined ? {} : { status }),
    ...(error === undefined ? {} : { error }),
  };
}
