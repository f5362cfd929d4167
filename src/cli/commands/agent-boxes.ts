/** `sally agent ls`, `rm` and `logs`: the sandboxes that agents have, by their own names or by the agent's in this folder. */

import { realpathSync } from 'node:fs';
import { gitHead } from '../../agents/git-head.ts';
import { agentLabel, branchLabel } from '../../protocol/agent-labels.ts';
import type { SandboxView } from '../../protocol/views.ts';
import { boxNameOf } from '../agent/agent-spec.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { print, printJson } from '../output.ts';
import { SandboxCalls } from '../sandbox-calls.ts';
import { ago, table } from '../table.ts';
import { type LogsOptions, logsCommand } from './logs.ts';
import { rmCommand } from './rm.ts';

export async function agentLs(options: { readonly json?: true }, { signal }: CliContext): Promise<number> {
  const calls = new SandboxCalls();
  try {
    const sandboxes = (await calls.list([], { signal })).filter(({ labels }) => agentLabel in labels);
    if (options.json === true) printJson({ sandboxes });
    else {
      const header = ['AGENT', 'BRANCH', 'STATE', 'FOLDER', 'CREATED', 'SANDBOX'];
      for (const row of table(header, sandboxes.map(rowOf))) print(row);
    }
    return exitCode.ok;
  } finally {
    calls.close();
  }
}

function rowOf({ name, state, labels, workspace, running_execs: running, created_at }: SandboxView) {
  const shown = running === 0 ? state.toLowerCase() : `${state.toLowerCase()} (${running} running)`;
  const [agent = '', branch = ''] = [labels[agentLabel], labels[branchLabel]];
  return [agent, branch, shown, workspace?.path ?? '-', ago(created_at), name];
}

export async function agentRm(
  agents: readonly string[],
  options: { readonly force?: true },
  context: CliContext,
): Promise<number> {
  return await rmCommand(await boxesOf(agents, context), options, context);
}

export async function agentLogs(agent: string, options: LogsOptions, context: CliContext): Promise<number> {
  const [box] = await boxesOf([agent], context);
  return await logsCommand(box, undefined, options, context);
}

/** A sandbox of that name, else that of the agent for this folder and branch. */
async function boxesOf(words: readonly string[], { signal }: CliContext): Promise<readonly string[]> {
  const calls = new SandboxCalls();
  const folder = realpathSync(process.cwd());
  try {
    const names = new Set((await calls.list([], { signal })).map(({ name }) => name));
    return words.map((word) => (names.has(word) ? word : boxNameOf(word, gitHead(folder), folder)));
  } finally {
    calls.close();
  }
}
