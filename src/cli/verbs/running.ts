/** Verbs that run commands and follow them: run, exec, shell, attach, wait, kill, logs. */

import { withBoxOptions } from '../options/box-options.ts';
import { collect, countValue, graceValue, timeoutValue } from '../options/values.ts';
import { examples, type Registry, startsWithCommand } from './registry.ts';

const timeoutHelp =
  'end the command and all that it started after this time, or never (default: 5m; never with -t)';

export function registerRunVerbs(registry: Registry): void {
  registerRun(registry);
  registerExec(registry);
  registerShell(registry);
  registerFollowing(registry);
  registerLogs(registry);
}

export function registerRun({ root, context, act }: Registry): void {
  withBoxOptions(root.command('run').argument('<command...>', 'the program and its arguments, after --'))
    .description('run a command in a new sandbox, then remove the sandbox')
    .option('-i, --interactive', 'pass this input to the command, also from a terminal')
    .option('-t, --tty', 'give the command a terminal')
    .option('-d, --detach', 'print the name and let it run; the sandbox stays, unless --rm')
    .option('--rm', 'remove the sandbox when the command ends (always so without -d)')
    .option('--timeout <duration>', timeoutHelp, timeoutValue)
    .option('--timings', 'say afterwards how long each step took')
    .option('--each <file>', 'with --branch: once for every line of the file, each on a branch of its own')
    .option('-j, --jobs <number>', 'with --each: how many at a time (default: 2)', countValue)
    .option('--json', 'with --each: the summary as JSON')
    .passThroughOptions()
    .addHelpText(
      'after',
      examples(
        'sally run -- id',
        'sally run -it -- bash',
        'sally run --memory 512m --timeout 10s -- python3 -c "print(6 * 7)"',
        'sally run --workspace --workspace-mode copy -- make test',
        'sally run --profile strict -- sh -c "ls /"',
        'sally run -d --name watcher -- sh -c "while :; do date; sleep 60; done"',
      ),
    )
    .action((command, options) =>
      act({ kind: 'passThrough' }, async () => {
        const { runCommand } = await import('../commands/run.ts');
        return await runCommand(command, options, context);
      }),
    );
}

export function registerExec({ root, context, act }: Registry): void {
  root
    .command('exec')
    .description("run a command in a sandbox; without a name in this folder's, which is made if need be")
    .argument('<words...>', 'the name of a sandbox and a command, or -- and a command')
    .option('-i, --interactive', 'pass this input to the command, also from a terminal')
    .option('-t, --tty', 'give the command a terminal')
    .option('-d, --detach', 'print the id of the command and let it run')
    .option('-e, --env <NAME=value>', 'environment variable; may be repeated', collect)
    .option('--env-file <file>', 'file of NAME=value lines; may be repeated', collect)
    .option('-w, --workdir <path>', "where the command starts (default: the sandbox's)")
    .option('--timeout <duration>', timeoutHelp, timeoutValue)
    .option('--approve', 'approve what the sallyport.yaml of this folder asks for')
    .passThroughOptions()
    .addHelpText(
      'after',
      examples(
        'sally exec web ls -l',
        'sally exec -it web bash',
        'sally exec -- npm test',
        'sally exec -d web python3 -m http.server',
      ),
    )
    .action((words, options, command) =>
      act({ kind: 'passThrough' }, async () => {
        const { execCommand } = await import('../commands/exec.ts');
        return await execCommand({ words, unnamed: startsWithCommand(command) }, options, context);
      }),
    );
}

function registerShell({ root, context, act }: Registry): void {
  root
    .command('shell')
    .description(
      "a login shell in a sandbox: bash, or sh where there is no bash; without a name in this folder's",
    )
    .argument('[box]', 'name or id of a sandbox')
    .option('-e, --env <NAME=value>', 'environment variable; may be repeated', collect)
    .option('-w, --workdir <path>', "where the shell starts (default: the sandbox's)")
    .option('--approve', 'approve what the sallyport.yaml of this folder asks for')
    .addHelpText('after', examples('sally shell', 'sally shell web', 'echo "make test" | sally shell web'))
    .action((box, options) =>
      act({ kind: 'passThrough' }, async () => {
        const { shellCommand } = await import('../commands/shell.ts');
        return await shellCommand(box, options, context);
      }),
    );
}

function registerFollowing({ root, context, act }: Registry): void {
  root
    .command('attach')
    .description('show what a running command prints from now on; Ctrl-C leaves it, it goes on')
    .argument('<box>', 'name or id of a sandbox')
    .argument('[exec]', 'id of a command, or main (default: main, or the only one that runs)')
    .option('-i, --interactive', 'pass this input to the command; with a terminal Ctrl-P Ctrl-Q leaves it')
    .addHelpText('after', examples('sally attach watcher', 'sally attach web ex-4f2k -i'))
    .action((box, exec, options) =>
      act({ kind: 'passThrough' }, async () => {
        const { attachCommand } = await import('../commands/attach.ts');
        return await attachCommand(box, exec, options, context);
      }),
    );
  root
    .command('wait')
    .description('wait until a command is over and print its exit code')
    .argument('<box>', 'name or id of a sandbox')
    .argument('[exec]', 'id of a command, or main (default: main, or the last one)')
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('sally wait watcher', 'sally wait web ex-4f2k --json'))
    .action((box, exec, options) =>
      act(options, async () => {
        const { waitCommand } = await import('../commands/wait.ts');
        return await waitCommand(box, exec, options, context);
      }),
    );
  root
    .command('kill')
    .description('end the commands of a sandbox and all that they started; the sandbox stays')
    .argument('<box>', 'name or id of a sandbox')
    .argument('[exec]', 'id of a command, or main (default: all that run)')
    .option('-s, --signal <name>', 'send only this signal, and only to the main process: INT, HUP, USR1 …')
    .option('--grace <duration>', 'time between TERM and KILL, or 0 (default: 5s)', graceValue)
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('sally kill web', 'sally kill web ex-4f2k', 'sally kill -s HUP web main'))
    .action((box, exec, options) =>
      act(options, async () => {
        const { killCommand } = await import('../commands/kill.ts');
        return await killCommand(box, exec, options, context);
      }),
    );
}

function registerLogs({ root, context, act }: Registry): void {
  root
    .command('logs')
    .description("what a command printed; without a name of this folder's sandbox")
    .argument('[box]', 'name or id of a sandbox')
    .argument('[exec]', 'id of a command, or main (default: main, or the last one)')
    .option('-f, --follow', 'go on with what comes, until the command is over')
    .option('-n, --tail <lines>', 'only the last lines of what is there', countValue)
    .option('--stdout', 'only what went to stdout')
    .option('--stderr', 'only what went to stderr')
    .option('--service <name>', 'what this service of the sandbox printed instead')
    .option('-l, --list', 'list the commands that are remembered')
    .option('--json', 'machine-readable output, with --list')
    .addHelpText(
      'after',
      examples(
        'sally logs web',
        'sally logs -f --tail 20 watcher',
        'sally logs --list web',
        'sally logs web ex-4f2k --stderr',
        'sally logs web --service db',
      ),
    )
    .action((box, exec, options) =>
      act(options, async () => {
        const { logsCommand } = await import('../commands/logs.ts');
        return await logsCommand(box, exec, options, context);
      }),
    );
}
