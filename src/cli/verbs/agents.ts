/** Verbs about agents: agent with its own verbs. */

import { withBoxOptions } from '../options/box-options.ts';
import { countValue, timeoutValue } from '../options/values.ts';
import { examples, type Registry } from './registry.ts';

export function registerAgentVerbs(registry: Registry): void {
  const { root, context, act } = registry;
  const agent = withBoxOptions(
    root
      .command('agent')
      .argument('<name>', 'claude, codex, opencode, or one of your own')
      .argument('[args...]', "the agent's own arguments, after --"),
    { publish: '--publish' },
  )
    .description('run an agent in the sandbox of this folder and branch, which is made if need be')
    .option('-p, --prompt <text>', 'without a terminal: do this, print what came of it, and end')
    .option('--model <name>', 'the model that it uses')
    .option('--ask', 'let it ask before it acts; else it acts unasked, as the sandbox holds it')
    .option('--rebuild', 'make its image and its sandbox anew')
    .option('--recreate', 'make its sandbox anew')
    .option('--timeout <duration>', 'end it after this time, or never (default: never)', timeoutValue)
    .option('--each <file>', 'once for every line of the file, each with a sandbox and a branch of its own')
    .option('-j, --jobs <number>', 'with --each: how many at a time (default: 2)', countValue)
    .option('--json', 'with --each: the summary as JSON')
    .enablePositionalOptions()
    .addHelpText(
      'after',
      examples(
        'sally agent claude',
        'sally agent claude -p "make the tests pass"',
        'sally agent codex --model gpt-5 --allow registry.npmjs.org',
        'sally agent claude --branch login -p "write the login form"',
        'sally agent claude --each tasks.txt -j 4 --worktree',
        'sally agent claude --workspace-mode copy -- --resume',
      ),
    )
    .action((name, args, options) =>
      act({ kind: 'passThrough' }, async () => {
        const { agentCommand } = await import('../commands/agent.ts');
        return await agentCommand(name, args, options, context);
      }),
    );
  registerBoxes(registry, agent as unknown as Registry['root']);
}

function registerBoxes({ context, act }: Registry, agent: Registry['root']): void {
  agent
    .command('ls')
    .description('list the sandboxes of agents')
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('sally agent ls', 'sally agent ls --json'))
    .action((options) =>
      act(options, async () => {
        const { agentLs } = await import('../commands/agent-boxes.ts');
        return await agentLs(options, context);
      }),
    );
  agent
    .command('rm')
    .description('remove sandboxes of agents')
    .argument('<agents...>', "agents of this folder and branch, or sandboxes' names")
    .option('-f, --force', 'also with changes that exist nowhere else')
    .addHelpText('after', examples('sally agent rm claude'))
    .action((names, options) =>
      act({}, async () => {
        const { agentRm } = await import('../commands/agent-boxes.ts');
        return await agentRm(names, options, context);
      }),
    );
  agent
    .command('logs')
    .description('what an agent printed the last time')
    .argument('<agent>', "an agent of this folder and branch, or a sandbox's name")
    .option('-f, --follow', 'go on with what comes, until it is over')
    .option('-n, --tail <lines>', 'only the last lines of what is there', countValue)
    .addHelpText('after', examples('sally agent logs claude', 'sally agent logs -f claude'))
    .action((name, options) =>
      act({}, async () => {
        const { agentLogs } = await import('../commands/agent-boxes.ts');
        return await agentLogs(name, options, context);
      }),
    );
}
