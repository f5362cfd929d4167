/** What of a spec's egress is refused, and what the one who asked should know of it. */

import { SallyportError } from '../../protocol/errors.ts';
import type { Spec } from '../../protocol/spec.ts';
import { contradictions, parsePolicy } from './policy.ts';
import { parseUpstream, requireLoginFits } from './upstream.ts';

export function decideEgress({ egress, profile }: Pick<Spec, 'egress' | 'profile'>): {
  readonly notes: readonly { readonly code: string; readonly message: string }[];
} {
  if (egress === undefined) return { notes: [] };
  if (profile === 'strict') {
    throw new SallyportError('refused_by_policy', 'egress: the strict profile reaches nothing', {
      details: { field: 'egress' },
      advice: 'Leave egress out, or use the standard profile.',
    });
  }
  requireLoginFits(parseUpstream(egress.upstream), egress.upstream_secret);
  const policy = parsePolicy(egress);
  const both = contradictions(policy);
  return {
    notes: [
      ...(policy.mode === 'deny'
        ? []
        : [
            {
              code: 'egress_open',
              message: `egress.mode is ${policy.mode}: every public host that no rule denies can be reached`,
            },
          ]),
      ...(both.length === 0
        ? []
        : [{ code: 'egress_contradiction', message: `allowed and denied, so denied: ${both.join(', ')}` }]),
    ],
  };
}
