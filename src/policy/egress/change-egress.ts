/** Rules that are added to a sandbox while it runs. The last word counts: what is allowed now is no longer denied by the same line. */

import { SallyportError } from '../../protocol/errors.ts';
import type { EgressSpec } from '../../protocol/spec.ts';
import { ruleOrThrow } from './policy.ts';
import { ruleText, type WrittenRule } from './rule.ts';

const mostRules = 1000;

export interface EgressChange {
  readonly allow: readonly NonNullable<EgressSpec['allow']>[number][];
  readonly deny: readonly NonNullable<EgressSpec['deny']>[number][];
}

/** Throws `egress_rule_invalid` before anything is changed. */
export function changeEgress(egress: EgressSpec, change: EgressChange): EgressSpec {
  for (const use of ['allow', 'deny'] as const) {
    for (const [index, rule] of change[use].entries()) ruleOrThrow(rule, use, `${use}.${index}`);
  }
  const texts = (rules: readonly WrittenRule[]): ReadonlySet<string> => new Set(rules.map(ruleText));
  const joined = <R extends WrittenRule>(
    before: readonly R[],
    added: readonly R[],
    gone: readonly R[],
  ): R[] => {
    const leave = texts([...added, ...gone]);
    return [...before.filter((rule) => !leave.has(ruleText(rule))), ...added];
  };
  const allow = joined(egress.allow ?? [], change.allow, change.deny);
  const deny = joined(egress.deny ?? [], change.deny, change.allow);
  if (allow.length > mostRules || deny.length > mostRules) {
    throw new SallyportError('egress_rule_invalid', `a sandbox has at most ${mostRules} rules of each kind`);
  }
  return { ...egress, allow, deny };
}
