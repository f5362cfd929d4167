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

  /** Written down before it holds, so that it holds after a restart as well. */
  change(change: EgressChange): NetView {
    const gate = this.#gate();
    const { id, egress, spec } = this.#keeper.record;
    this.#keeper.note({ egress: changeEgress(egress ?? spec.egress ?? {}, change) });
    const closed = gate.changed();
    this.#world.store.events.append({
      type: 'egress.changed',
      sandbox_id: id,
      allow: change.allow.map(ruleText),
      deny: change.deny.map(ruleText),
      closed,
    });
    return gate.view();
  }

  /** All rules at once, of one whose spec is another now. Where it does not run they count from its start on. */
  replace(egress: EgressSpec): void {
    this.#keeper.note({ egress });
    const closed = this.#box.gate?.changed() ?? 0;
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
