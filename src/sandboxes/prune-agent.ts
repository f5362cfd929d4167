/** The agent that a sandbox is for, and the check that a prune names an agent that exists. Pure. */

import { closest } from '../lib/closest.ts';
import { agentLabel } from '../protocol/agent-labels.ts';
import { SallyportError } from '../protocol/errors.ts';
import type { Spec } from '../protocol/spec.ts';

type AgentFields = Pick<Spec, 'labels' | 'agent'>;

/** The agent of its label, else the agent whose image it has. Undefined: it is for no agent. */
export function agentOf({ labels, agent }: AgentFields): string | undefined {
  return labels?.[agentLabel] ?? agent;
}

/** A misspelt agent has no sandboxes, so a prune of them would report that nothing is left over. */
export function requireKnownAgent(
  name: string,
  specs: readonly AgentFields[],
  defined: readonly string[],
): void {
  const used = specs.map(agentOf).filter((agent) => agent !== undefined);
  const known = [...new Set([...defined, ...used])].sort();
  if (known.includes(name)) return;
  const shown = name.slice(0, 60);
  const meant = closest(name, known);
  throw new SallyportError(
    'agent_unknown',
    `there is no agent ${JSON.stringify(shown)}${meant === undefined ? '' : `; did you mean ${meant}?`}`,
    {
      details: { agent: shown, known },
      advice: `Use one of ${known.join(', ')}, or leave the agent out to prune the sandboxes of all.`,
    },
  );
}
