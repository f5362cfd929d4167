/** The network of one sandbox as its users see and change it. */

import { changeEgress, type EgressChange } from '../policy/egress/change-egress.ts';
import { ruleText } from '../policy/egress/rule.ts';
import { SallyportError } from '../protocol/errors.ts';
import type { EgressSpec } from '../protocol/spec.ts';
import type { EgressLineView, NetView } from '../protocol/views.ts';
import type { BoxKeeper } from './box-keeper.ts';
import type { BoxGate } from './ports.ts';
import type { RecordKeeper } from './record-keeper.ts';
import type { SandboxWorld } from './world.ts';

export class SandboxNet {
  readonly #world: SandboxWorld;
  readonly #keeper: RecordKeeper;
  readonly #box: BoxKeeper;

  constructor(world: SandboxWorld, keeper: RecordKeeper, box: BoxKeeper) {
    this.#world = world;
    this.#keeper = keeper;
    this.#box = box;
  }

  view(): NetView {
    return this.#gate().view();
  }

  log(options: { readonly follow: boolean; readonly signal: AbortSignal }): AsyncIterable<EgressLineView> {
    return this.#gate().follow(options);
  }

  /**
   * Written down before it holds, so that it holds after a restart as well. Throws at once where there is nothing to change; resolves when no
   * connection is judged by the old rules any more.
   */
  change(change: EgressChange): Promise<NetView> {
    const gate = this.#gate();
    const { egress, spec } = this.#keeper.record;
    this.#keeper.note({ egress: changeEgress(egress ?? spec.egress ?? {}, change) });
    return this.#changed(gate, gate.changed(), change);
  }

  async #changed(gate: BoxGate, closing: Promise<number>, { allow, deny }: EgressChange): Promise<NetView> {
    const closed = await closing;
    this.#world.store.events.append({
      type: 'egress.changed',
      sandbox_id: this.#keeper.record.id,
      allow: allow.map(ruleText),
      deny: deny.map(ruleText),
      closed,
    });
    return gate.view();
  }

  /** All rules at once, of one whose spec is another now. Where it does not run they count from its start on. */
  async replace(egress: EgressSpec): Promise<void> {
    this.#keeper.note({ egress });
    const closed = (await this.#box.gate?.changed()) ?? 0;
    this.#world.store.events.append({
      type: 'egress.changed',
      sandbox_id: this.#keeper.record.id,
      allow: (egress.allow ?? []).map(ruleText),
      deny: (egress.deny ?? []).map(ruleText),
      closed,
    });
  }

  #gate(): BoxGate {
    const { gate } = this.#box;
    if (gate !== undefined) return gate;
    const { name } = this.#keeper.record;
    throw new SallyportError('egress_closed', `sandbox ${name} was made without egress: it reaches nothing`, {
      details: { sandbox: name },
    });
  }
}
