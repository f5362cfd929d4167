/** Verbs about commands that are judged: guard, approvals, approve, deny, audit. */

import { Option } from '@commander-js/extra-typings';
import { collect, graceValue, sizeValue, timeoutValue } from '../options/values.ts';
import { examples, type Registry } from './registry.ts';

export function registerGuardVerbs(registry: Registry): void {
  registerGuard(registry);
  registerAnswers(registry);
  registerAudit(registry);
}

function registerGuard({ root, context, act }: Registry): void {
  root
    .command('guard')
    .description('judge a command and run it where it belongs: here, in a new strict sandbox, or not at all')
    .argument(
      '[command...]',
      'after --: one word is a line of shell, several are a program and its arguments',
    )
    .option('--tool <name>', 'a tool of an agent instead: of a shell, or a program of that name')
    .option('--args <json>', 'what the tool is called with: a list of words, or an object')
    .option(
      '--timeout <duration>',
      'end it after this time, or never (default: 5m; without any isolation at most 10s)',
      timeoutValue,
    )
    .option('--no-ask', 'reject at once what somebody would have to approve')
    .option(
      '--approval-timeout <duration>',
      'how long to wait for an answer (default and most: 5m)',
      graceValue,
    )
    .option(
      '--image <reference>',
      'image of the sandbox (default: guard.image of your own settings, else images.strict, images.default, the base image)',
    )
    .option(
      '--writable-copy',
      'give the sandbox a copy of this folder to write to, kept for sally diff and sally apply (default: this folder, read-only)',
    )
    .option('--workspace [folder]', 'give the sandbox this folder, or the one named; a copy of it')
    .addOption(
      new Option('--workspace-mode <mode>', 'how it gets the folder (default: copy)').choices([
        'live',
        'readonly',
        'copy',
      ] as const),
    )
    .addOption(
      new Option('--profile <name>', 'how much the sandbox allows (default: strict)').choices([
        'standard',
        'strict',
      ] as const),
    )
    .option('-m, --memory <size>', 'memory limit of the sandbox', sizeValue)
    .option('--disk <size>', 'disk limit of the sandbox', sizeValue)
    .option('--allow <host[:port]>', 'host that the sandbox may reach; may be repeated', collect)
    .option('--json', 'the result as one JSON object')
    .passThroughOptions()
    .addHelpText(
      'after',
      examples(
        "sally guard -- 'ls -l | head'",
        'sally guard --json -- npm install left-pad',
        'sally guard --no-ask -- rm -rf /',
        'sally guard --writable-copy -- node build.js',
        'sally guard --tool bash --args \'{"command":"make test"}\'',
      ),
    )
    .action((command, options) =>
      act({ kind: 'passThrough', json: options.json }, async () => {
        const { guardVerb } = await import('../commands/guard.ts');
        return await guardVerb(command, options, context);
      }),
    );
}

function registerAnswers({ root, context, act }: Registry): void {
  root
    .command('approvals')
    .description('questions of the guard that wait for an answer')
    .option('-a, --all', 'also those that are decided')
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('sally approvals', 'sally approvals --all --json'))
    .action((options) =>
      act(options, async () => {
        const { approvalsCommand } = await import('../commands/approvals.ts');
        return await approvalsCommand(options, context);
      }),
    );
  root
    .command('approve')
    .description('let a guarded command run; at a terminal, or with SALLYPORT_APPROVER_TOKEN')
    .argument('<id>', 'the question, such as ap-4f2c…')
    .option('--word <word>', 'approve: where several were approved in a hurry, instead of typing it')
    .option('--remember', 'for this class in the session that asks; never what destroys or is unknown')
    .option('--json', 'machine-readable output')
    .addHelpText(
      'after',
      examples('sally approve ap-4f2c09d1b7a3e865', 'sally approve ap-4f2c09d1b7a3e865 --remember'),
    )
    .action((id, options) =>
      act(options, async () => {
        const { answerCommand } = await import('../commands/approvals.ts');
        return await answerCommand('approve', id, options, context);
      }),
    );
  root
    .command('deny')
    .description('do not let a guarded command run; at a terminal, or with SALLYPORT_APPROVER_TOKEN')
    .argument('<id>', 'the question, such as ap-4f2c…')
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('sally deny ap-4f2c09d1b7a3e865'))
    .action((id, options) =>
      act(options, async () => {
        const { answerCommand } = await import('../commands/approvals.ts');
        return await answerCommand('deny', id, options, context);
      }),
    );
}

function registerAudit({ root, context, act }: Registry): void {
  const audit = root
    .command('audit')
    .description('what ran, where, why and how it ended, oldest first')
    .option('--since <when>', 'only from then on: a duration such as 2h, or a time')
    .option('--box <name>', 'only in this sandbox')
    .option('--type <type>', 'only exec, guard, approval or audit')
    .option('--json', 'one JSON object a line')
    .addHelpText(
      'after',
      examples(
        'sally audit --since 2h',
        'sally audit --box web --json | jq .argv',
        'sally audit --type approval',
        'sally audit verify',
      ),
    )
    .action((options) =>
      act(options, async () => {
        const { auditCommand } = await import('../commands/audit.ts');
        return await auditCommand(options, context);
      }),
    );
  audit
    .command('verify')
    .description('whether the log is as it was written: nothing edited, removed or cut; ends with 1 if not')
    .option('--head <hash>', 'also that the line of this hash is in it, which an earlier call printed')
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('sally audit verify', 'sally audit verify --json | jq -r .head.hash'))
    .action((_options, command) => {
      // The verb above it has a --json too, and takes it.
      const options = command.optsWithGlobals() as { readonly head?: string; readonly json?: true };
      return act(options, async () => {
        const { auditVerifyCommand } = await import('../commands/audit.ts');
        return await auditVerifyCommand(options);
      });
    });
}
