/** The command line of an agent, from its definition and what was asked for. Pure. */

import { SallyportError } from '../protocol/errors.ts';
import type { Agent } from './definition.ts';

export interface AgentWish {
  /** Headless, with this to do. */
  readonly prompt?: string;
  readonly model?: string;
  /** It asks before it acts. */
  readonly ask?: boolean;
  /** Passed on as they are. */
  readonly args: readonly string[];
}

export function agentCommand(agent: Agent, { prompt, model, ask, args }: AgentWish): readonly string[] {
  return [
    ...agent.command,
    ...(prompt === undefined ? [] : filled(agent, 'headless', '-p', '{prompt}', prompt)),
    ...(ask === true ? [] : (agent.skip_permissions ?? [])),
    ...(model === undefined ? [] : filled(agent, 'model', '--model', '{model}', model)),
    ...args,
  ];
}

function filled(
  agent: Agent,
  field: 'headless' | 'model',
  flag: string,
  placeholder: string,
  text: string,
): readonly string[] {
  const words = agent[field];
  if (words === undefined) {
    throw new SallyportError('usage', `${flag}: the agent ${agent.name} has no arguments for it`, {
      details: { agent: agent.name, field },
      advice: `Say \`${field}:\` in ${agent.file}, or give its own arguments after --.`,
    });
  }
  return words.map((word) => word.split(placeholder).join(text));
}
