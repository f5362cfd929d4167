/** `sally agent <name>`: an agent in the sandbox of this folder and branch; its terminal, input and exit code are this process's own. */

import { agentCommand as agentArgv } from '../../agents/agent-command.ts';
import { findAgent } from '../../agents/find-agent.ts';
import { gitEnvironment } from '../../agents/git/config.ts';
import { gitIdentity } from '../../agents/git-identity.ts';
import { type AgentOptions, agentPlaces } from '../agent/agent-options.ts';
import { agentSpec } from '../agent/agent-spec.ts';
import { chooseWorkspace } from '../agent/choose-workspace.ts';
import { ensureAgentBox, requireReady, writeSettings } from '../agent/prepare-box.ts';
import { usableSecrets } from '../agent/usable-secrets.ts';

import type { CliContext } from '../context.ts';
import { runForeground } from '../foreground.ts';
import { loadSpec } from '../load-spec.ts';
import { specFlags } from '../options/spec-from-options.ts';
import { note } from '../output.ts';
import { SandboxCalls } from '../sandbox-calls.ts';

export async function agentCommand(
  name: string,
  args: readonly string[],
  options: AgentOptions,
  context: CliContext,
): Promise<number> {
  const { signal } = context;
  const cwd = process.cwd();
  if (options.each !== undefined)
    return await (await import('../agent/agent-each.ts')).agentEach(name, args, options, context);
  const chosen = await chooseWorkspace({ cwd, ...options }, signal);
  const agent = await findAgent(name, agentPlaces(chosen.folder));
  const argv = agentArgv(agent, { ...options, args });
  const approve = options.approve === true;
  const { branch: _branch, worktree: _worktree, workspaceMode: _mode, ...plain } = options;
  const flags = specFlags(plain, cwd);
  // Asked meanwhile: git takes as long as much of the rest.
  const identity = gitIdentity(chosen.folder, gitEnvironment());
  const said = await loadSpec(
    { ...flags, workspace: { ...flags.workspace, ...chosen.workspace } },
    { cwd: chosen.folder, approve },
    context,
  );
  const calls = new SandboxCalls();
  try {
    const secrets = await usableSecrets(calls, agent, { signal });
    const spec = agentSpec({
      agent,
      said,
      chosen,
      credentials: secrets.map((secret) => secret.name),
      ...(options.name === undefined ? {} : { name: options.name }),
    });
    const wish = { spec, approve, recreate: options.recreate === true, rebuild: options.rebuild === true };
    const box = await ensureAgentBox(calls, wish, context);
    await requireReady(calls, box, new Set(secrets.flatMap(({ hosts }) => hosts)), signal);
    await writeSettings(calls, box, agent, signal);
    try {
      const exec = { argv: [...argv], envs: { ...(await identity) }, timeout_ms: options.timeout ?? 0 };
      const tty = options.prompt === undefined && process.stdin.isTTY && process.stdout.isTTY;
      const streams = {
        ...(tty ? { tty } : {}),
        notThere: () =>
          note(
            `${argv[0]} is not in the image of ${box.name} (${box.image}): leave out --image, or put it in`,
          ),
      };
      return await runForeground(calls, box.id, exec, streams, context);
    } finally {
      await chosen.after(calls, box.name, signal);
    }
  } finally {
    calls.close();
  }
}
