/** `sally agent <name> --each`: the agent once for every line of a file, without a terminal, each on a branch of its own. */

import { agentCommand as agentArgv } from '../../agents/agent-command.ts';
import { findAgent } from '../../agents/find-agent.ts';
import { gitEnvironment } from '../../agents/git/config.ts';
import { gitIdentity } from '../../agents/git-identity.ts';
import { SallyportError } from '../../protocol/errors.ts';
import type { SpecInput } from '../../protocol/spec.ts';
import type { CliContext } from '../context.ts';
import { loadSpec } from '../load-spec.ts';
import { hasDockerfile } from '../make-sandbox.ts';
import { specFlags } from '../options/spec-from-options.ts';
import { eachOf, workOnEach } from '../run-each.ts';
import { SandboxCalls } from '../sandbox-calls.ts';
import { type AgentOptions, agentPlaces } from './agent-options.ts';
import { agentSpec } from './agent-spec.ts';
import { requireReady, writeSettings } from './prepare-box.ts';
import { usableSecrets } from './usable-secrets.ts';

export async function agentEach(
  name: string,
  args: readonly string[],
  options: AgentOptions,
  context: CliContext,
): Promise<number> {
  if (options.prompt !== undefined) {
    throw new SallyportError('usage', '--each gives each line as the prompt, so it takes no -p', {
      advice: 'Leave -p out, or write what it says into the lines of the file.',
    });
  }
  if (options.recreate === true) {
    throw new SallyportError('usage', '--each makes its sandboxes anew', {
      advice: 'Leave --recreate out; --rebuild makes the image anew.',
    });
  }
  const { signal } = context;
  const cwd = process.cwd();
  const { branch: prefix = name, worktree: _worktree, ...plain } = options;
  const { tasks, repository } = await eachOf(options, cwd);
  const agent = await findAgent(name, agentPlaces(repository));
  const approve = options.approve === true;
  const flags = specFlags({ ...plain, workspace: repository }, cwd);
  const said = await loadSpec(flags, { cwd: repository, approve }, context);
  const envs = { ...(await gitIdentity(repository, gitEnvironment())) };
  const calls = new SandboxCalls();
  try {
    // One question instead of a refusal in each of them. SECURITY: not past an upstream, which is there so that nobody sees this machine.
    const ask = said.egress?.upstream === undefined;
    const secrets = await usableSecrets(calls, agent, { signal, ask });
    const credentials = secrets.map((secret) => secret.name);
    const hosts = new Set(secrets.flatMap((secret) => secret.hosts));
    const argvOf = (prompt: string) => agentArgv(agent, { ...options, prompt, args });
    // What its definition lacks is said before anything is made.
    argvOf('');
    const specOf = (branch: string) =>
      agentSpec({
        agent,
        said,
        chosen: { folder: repository, head: { kind: 'branch', branch } },
        credentials,
      });
    if (!hasDockerfile(repository)) await provideImage(specOf(prefix), options.rebuild === true, signal);
    return await workOnEach(
      tasks,
      {
        calls,
        repository,
        prefix,
        options,
        specOf,
        execOf: async ({ text }, box) => {
          await requireReady(calls, box, hosts, signal);
          await writeSettings(calls, box, agent, signal);
          return { argv: argvOf(text), envs };
        },
      },
      context,
    );
  } finally {
    calls.close();
  }
}

/** Whoever names an image has it. */
async function provideImage(
  { image, agent }: SpecInput,
  rebuild: boolean,
  signal: AbortSignal,
): Promise<void> {
  if (image !== undefined || agent === undefined) return;
  const { provideTemplateImage } = await import('../made-image.ts');
  await provideTemplateImage(agent, { rebuild }, signal);
}
