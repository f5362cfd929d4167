/** Verbs about secrets: what the gate puts into requests, and no sandbox ever sees. */

import { collect, countValue, graceValue } from '../options/values.ts';
import { examples, type Registry } from './registry.ts';

export function registerSecretVerbs({ root, context, act }: Registry): void {
  const secret = root
    .command('secret')
    .description('secrets that the gate puts into requests, and no sandbox sees');
  secret
    .command('set')
    .argument('<name>', 'how it is called; anthropic, openai and github need no flags')
    .description('keep a secret; its value comes from standard input, or is typed unseen')
    .option(
      '--service <name>',
      'bind it as this service needs it: anthropic, anthropic-oauth, openai or github',
    )
    .option('--host <host>', 'a host that it may go to; may be repeated', collect)
    .option('--port <port>', 'the port there (default 443)', countValue)
    .option('--path <path>', 'only to this path and what is below it')
    .option(
      '--header <form>',
      "the header that it stands in, as 'authorization: Bearer {}'; may be repeated",
      collect,
    )
    .option('--env <name>', 'a variable that holds its phantom inside; may be repeated', collect)
    .option('--check-path <path>', 'asked by `sally secret check --ask`: whether the service takes it')
    .option('--prefix <text>', 'how its phantom begins, for programs that look at it')
    .option(
      '--command <argv...>',
      'a command of this machine that prints the value, instead of standard input',
    )
    .option('--ttl <duration>', 'how long what the command printed is used (default 5m)', graceValue)
    .option('--budget <requests>', 'how many requests of one sandbox get it', countValue)
    .option('--expires <date>', 'when it ends, for `sally secret check`')
    .option(
      '--store <where>',
      "where its value is kept: keyring (the system's), file, or auto (the keyring if one answers)",
    )
    .option('--keep-value', 'change the rest and keep the value that it has')
    .option('--json', 'machine-readable output')
    .addHelpText(
      'after',
      examples(
        'sally secret set anthropic < key.txt',
        "sally secret set ci --host api.github.com --header 'authorization: Bearer {}' --env GITHUB_TOKEN",
        'sally secret set github --command gh auth token',
        'sally secret set ci --budget 100 --keep-value',
        'sally secret set ci --store keyring --keep-value',
      ),
    )
    .action((name, options) =>
      act(options, async () => {
        const { secretSetCommand } = await import('../commands/secret.ts');
        return await secretSetCommand(name, options, context);
      }),
    );
  secret
    .command('ls')
    .description('list secrets and where each may go; never their values')
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('sally secret ls', 'sally secret ls --json'))
    .action((options) =>
      act(options, async () => {
        const { secretLsCommand } = await import('../commands/secret.ts');
        return await secretLsCommand(options, context);
      }),
    );
  secret
    .command('rm')
    .argument('<names...>', 'the secrets')
    .description('remove secrets; the next request that needs one is refused')
    .addHelpText('after', examples('sally secret rm ci'))
    .action((names) =>
      act({}, async () => {
        const { secretRmCommand } = await import('../commands/secret.ts');
        return await secretRmCommand(names, context);
      }),
    );
  secret
    .command('check')
    .argument(
      '[names...]',
      'the secrets, or agents such as claude, whose token is meant; all secrets without',
    )
    .description('whether secrets can be used: valid, expiring, expired, missing or failing; 0 if all can')
    .option('--ask', 'ask the services themselves; for agents that is done unasked')
    .option('--offline', 'ask no service')
    .option('--json', 'machine-readable output')
    .addHelpText(
      'after',
      examples(
        'sally secret check',
        'sally secret check claude',
        'sally secret check anthropic ci --ask --json',
      ),
    )
    .action((names, options) =>
      act(options, async () => {
        const { secretCheckCommand } = await import('../commands/secret.ts');
        return await secretCheckCommand(names, options, context);
      }),
    );
}
