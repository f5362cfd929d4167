/** What the daemon measures of itself. Execs are counted by their events, so that nothing else has to know of metrics. */

import { readdirSync } from 'node:fs';
import type { SallyEvent } from '../protocol/events.ts';
import { sandboxStates } from '../protocol/states.ts';
import type { HttpObserver } from './http-server.ts';
import { type Counter, type Histogram, type Labels, Metrics } from './metrics.ts';
import type { SandboxesSurface } from './surface.ts';

const durationBounds = [0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 3600];
/** Execs whose start is remembered for their duration; the oldest are forgotten first. */
const mostRemembered = 10_000;

export class DaemonMetrics implements HttpObserver {
  readonly #metrics = new Metrics();
  readonly #sandboxes: SandboxesSurface;
  readonly #requests: Counter;
  readonly #started: Counter;
  readonly #ended: Counter;
  readonly #durations: Histogram;
  readonly #startTimes = new Map<string, number>();

  constructor(sandboxes: SandboxesSurface) {
    this.#sandboxes = sandboxes;
    const metrics = this.#metrics;
    metrics.gauge('sallyport_sandboxes', 'Sandboxes by state.', () => this.#states());
    this.#started = metrics.counter(
      'sallyport_execs_started_total',
      'Commands started since the daemon runs.',
    );
    this.#ended = metrics.counter('sallyport_execs_ended_total', 'Commands ended, by outcome.');
    this.#durations = metrics.histogram(
      'sallyport_exec_duration_seconds',
      'How long commands ran.',
      durationBounds,
    );
    this.#requests = metrics.counter(
      'sallyport_http_requests_total',
      'Requests by route, method and status.',
    );
    metrics.gauge(
      'sallyport_events_total',
      'Events since the store exists.',
      () => [[{}, sandboxes.events.sequence]],
      'counter',
    );
    metrics.gauge('process_resident_memory_bytes', 'Resident memory.', () => [
      [{}, process.memoryUsage.rss()],
    ]);
    metrics.gauge('process_open_fds', 'Open file descriptors.', openDescriptors);
    metrics.gauge('process_start_time_seconds', 'When the daemon started.', () => [
      [{}, Math.round(Date.now() / 1000 - process.uptime())],
    ]);
  }

  text(): string {
    return this.#metrics.text();
  }

  answered(route: string, method: string, status: number): void {
    this.#requests.add({ route, method, status: String(status) });
  }

  /** Counts until the signal fires. */
  async follow(signal: AbortSignal): Promise<void> {
    const { events } = this.#sandboxes;
    for await (const event of events.follow(events.sequence, signal)) this.#count(event);
  }

  #count(event: SallyEvent): void {
    if (event.type === 'exec.started') {
      this.#started.add();
      this.#startTimes.set(event.exec_id, Date.parse(event.at));
      const [oldest] = this.#startTimes.keys();
      if (this.#startTimes.size > mostRemembered && oldest !== undefined) this.#startTimes.delete(oldest);
    } else if (event.type === 'exec.ended') {
      this.#ended.add({ outcome: outcomeOf(event) });
      const from = this.#startTimes.get(event.exec_id);
      this.#startTimes.delete(event.exec_id);
      if (from !== undefined) this.#durations.observe((Date.parse(event.at) - from) / 1000);
    }
  }

  *#states(): Generator<readonly [Labels, number]> {
    const states = this.#sandboxes.list().map(({ state }) => state);
    for (const state of sandboxStates) {
      yield [{ state }, states.filter((one) => one === state).length];
    }
  }
}

function outcomeOf(event: Extract<SallyEvent, { type: 'exec.ended' }>): string {
  if (event.state !== 'exited') return event.state;
  if (event.timed_out) return 'timed_out';
  if (event.oom_killed) return 'out_of_memory';
  if (event.signal !== undefined) return 'signal';
  return event.exit_code === 0 ? 'success' : 'failure';
}

function openDescriptors(): Iterable<readonly [Labels, number]> {
  try {
    return [[{}, readdirSync('/proc/self/fd').length]];
  } catch {
    // Only Linux tells.
    return [];
  }
}
