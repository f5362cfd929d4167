/** What a command asked the gate for and did not get, in a line or two when it is over, with the command that would allow it. */

import type { NetView } from '../protocol/views.ts';
import { note } from './output.ts';
import type { SandboxCalls } from './sandbox-calls.ts';
import { printable } from './table.ts';

type Denied = NetView['denied'][number];

const mostShown = 5;

export class DenialSummary {
  readonly #calls: SandboxCalls;
  readonly #box: string;
  readonly #before: readonly Denied[];

  /** `before` is what was denied when the command began. */
  constructor(calls: SandboxCalls, box: string, before: readonly Denied[]) {
    this.#calls = calls;
    this.#box = box;
    this.#before = before;
  }

  /** Never in the way of the command's own end. */
  async print(ephemeral: boolean): Promise<void> {
    const after = await this.#calls.net(this.#box).catch(() => undefined);
    const news = (after?.denied ?? []).flatMap((denied) => {
      const before = this.#before.find(({ host, port }) => host === denied.host && port === denied.port);
      const count = denied.count - (before?.count ?? 0);
      return count > 0 ? [{ ...denied, count }] : [];
    });
    if (news.length === 0) return;
    note(`${news.length} ${news.length === 1 ? 'host' : 'hosts'} denied:`);
    for (const { host, port, count, advice } of news.slice(0, mostShown)) {
      const place = port === 0 ? host : `${host}:${port}`;
      // A sandbox that is gone is not changed any more: its rule is for the next one.
      const way = ephemeral ? advice.replace(/^sally net allow \S+ /, '--allow ') : advice;
      note(`  ${printable(place)} ×${count} → ${printable(way)}`);
    }
    if (news.length > mostShown) note(`  and ${news.length - mostShown} more`);
  }
}
