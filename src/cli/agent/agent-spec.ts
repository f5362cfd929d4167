/** The sandbox of an agent as a spec: what its definition says, below what flags, files and environment say. */

import type { Agent } from '../../agents/definition.ts';
import { branchOf, type GitHead, headText } from '../../agents/git-head.ts';
import { agentBoxName } from '../../policy/agent-name.ts';
import { agentLabel, branchLabel } from '../../protocol/agent-labels.ts';
import type { SpecInput } from '../../protocol/spec.ts';
import type { ChosenWorkspace } from './choose-workspace.ts';

export interface AgentSpecParts {
  readonly agent: Agent;
  /** With the workspace that was chosen. */
  readonly said: SpecInput;
  /** `--name`. */
  readonly name?: string;
  readonly chosen: Pick<ChosenWorkspace, 'folder' | 'head'>;
  /** Names of secrets. */
  readonly credentials: readonly string[];
}

export function agentSpec({
  agent,
  said,
  name,
  chosen,
  credentials,
}: AgentSpecParts): SpecInput & { name: string } {
  const { command: _main, egress = {}, ...rest } = said;
  const image = said.image ?? agent.image;
  const template = said.agent ?? agent.template;
  return {
    ...rest,
    name: name ?? boxNameOf(agent.name, chosen.head, chosen.folder),
    ...(image === undefined ? {} : { image }),
    ...(template === undefined ? {} : { agent: template }),
    labels: { ...said.labels, [agentLabel]: agent.name, [branchLabel]: headText(chosen.head) },
    envs: { ...agent.envs, ...said.envs },
    egress: {
      ...egress,
      allow: [...(agent.allow ?? []), ...(egress.allow ?? [])],
      credentials: [...new Set([...credentials, ...(egress.credentials ?? [])])],
    },
  };
}

/** Of the agent that works on this folder while it is on this branch. */
export function boxNameOf(agent: string, head: GitHead, folder: string): string {
  const branch = branchOf(head);
  return agentBoxName({ agent, workspace: folder, ...(branch === undefined ? {} : { branch }) });
}
