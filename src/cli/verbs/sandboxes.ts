/** Verbs about sandboxes as a whole: make, show, stop, start, remove. */

import { withBoxOptions } from '../options/box-options.ts';
import { collect, durationValue, graceValue, sizeValue } from '../options/values.ts';
import { engineOption, examples, type Registry, startsWithCommand } from './registry.ts';

export function registerSandboxVerbs(registry: Registry): void {
  registerCreate(registry);
  registerShow(registry);
  registerChange(registry);
  registerRemove(registry);
}

function registerCreate({ root, context, act }: Registry): void {
  withBoxOptions(
    root.command('create').argument('[command...]', 'a command that runs in it as main, after --'),
  )
    .description('make a sandbox that stays; prints its name')
    .option('--reuse', 'use the one of this name if it was made with the same options')
    .option('--json', 'machine-readable output')
    .passThroughOptions()
    .addHelpText(
      'after',
      examples(
        'sally create --name web',
        'sally create --workspace',
        'sally create --name db -v ./seed:/seed -e MODE=test -- sh -c "sleep 1h"',
      ),
    )
    .action((command, options, self) =>
      act(options, async () => {
        const { createCommand } = await import('../commands/create.ts');
        const words = { command, isMeant: startsWithCommand(self) };
        return await createCommand(words, options, context);
      }),
    );
  withBoxOptions(root.command('explain').argument('[command...]', 'the program and its arguments, after --'))
    .description('show what run or create would ask of the engine, and make nothing')
    .option('--json', 'machine-readable output')
    .passThroughOptions()
    .addHelpText(
      'after',
      examples('sally explain -- id', 'sally explain --profile strict --json', 'sally explain --workspace'),
    )
    .action((command, options) =>
      act(options, async () => {
        const { explainCommand } = await import('../commands/explain.ts');
        return await explainCommand(command, options, context);
      }),
    );
}

function registerShow({ root, context, act }: Registry): void {
  root
    .command('ls')
    .alias('ps')
    .description('list sandboxes')
    .option('--label <name=value>', 'only those with this label; may be repeated', collect)
    .option('-q, --quiet', 'only the names')
    .option('--json', 'machine-readable output')
    .addOption(engineOption())
    .addHelpText(
      'after',
      examples('sally ls', 'sally ls --label team=web', 'sally ls --json | jq -r ".sandboxes[].name"'),
    )
    .action((options) =>
      act({ ...options, engineInUse: options.engine }, async () => {
        const { lsCommand } = await import('../commands/ls.ts');
        return await lsCommand(options, context);
      }),
    );
  root
    .command('inspect')
    .description('everything that is known of sandboxes, as JSON')
    .argument('<boxes...>', 'names or ids of sandboxes')
    .addHelpText('after', examples('sally inspect web', 'sally inspect web | jq ".[0].isolation"'))
    .action((boxes) =>
      act({ json: true }, async () => {
        const { inspectCommand } = await import('../commands/inspect.ts');
        return await inspectCommand(boxes, context);
      }),
    );
  root
    .command('stats')
    .description('what sandboxes use now (default: all that run)')
    .argument('[boxes...]', 'names or ids of sandboxes')
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('sally stats', 'sally stats web --json'))
    .action((boxes, options) =>
      act(options, async () => {
        const { statsCommand } = await import('../commands/stats.ts');
        return await statsCommand(boxes, options, context);
      }),
    );
  root
    .command('verify')
    .description('read back from inside what is enforced, and compare it with what was asked for')
    .argument('<box>', 'name or id of a sandbox')
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('sally verify web', 'sally verify web --json'))
    .action((box, options) =>
      act(options, async () => {
        const { verifyCommand } = await import('../commands/verify.ts');
        return await verifyCommand(box, options, context);
      }),
    );
}

function registerChange({ root, context, act }: Registry): void {
  root
    .command('stop')
    .description('stop sandboxes; their files stay')
    .argument('<boxes...>', 'names or ids of sandboxes')
    .option('--grace <duration>', 'time between TERM and KILL, or 0 (default: 5s)', graceValue)
    .addHelpText('after', examples('sally stop web', 'sally stop web db --grace 30s'))
    .action((boxes, options) =>
      act({}, async () => {
        const { stopCommand } = await import('../commands/change-state.ts');
        return await stopCommand(boxes, options, context);
      }),
    );
  root
    .command('start')
    .description('start sandboxes that are stopped')
    .argument('<boxes...>', 'names or ids of sandboxes')
    .option('--clean-up', 'once, for files and `sally shell` alone: no command, services, ports or network')
    .option('--disk <size>', 'change the disk limit, such as 40g', sizeValue)
    .addHelpText(
      'after',
      examples(
        'sally start web',
        'sally start web db',
        'sally start --disk 40g web',
        'sally start --clean-up web',
      ),
    )
    .action((boxes, options) =>
      act({}, async () => {
        const { startCommand } = await import('../commands/change-state.ts');
        return await startCommand(boxes, options, context);
      }),
    );
  const changes = [
    ['pause', 'freeze all processes of sandboxes'],
    ['resume', 'let paused sandboxes go on'],
  ] as const;
  for (const [verb, description] of changes) {
    root
      .command(verb)
      .description(description)
      .argument('<boxes...>', 'names or ids of sandboxes')
      .addHelpText('after', examples(`sally ${verb} web`, `sally ${verb} web db`))
      .action((boxes) =>
        act({}, async () => {
          const { changeCommand } = await import('../commands/change-state.ts');
          return await changeCommand(verb, boxes, context);
        }),
      );
  }
}

function registerRemove({ root, context, act }: Registry): void {
  root
    .command('rm')
    .description('remove sandboxes and everything in them')
    .argument('<boxes...>', 'names or ids of sandboxes')
    .option(
      '-f, --force',
      'also if changes of a copied workspace are lost; one that is not there is no error',
    )
    .addHelpText('after', examples('sally rm web', 'sally rm web db --force', 'sally rm $(sally ls -q)'))
    .action((boxes, options) =>
      act({}, async () => {
        const { rmCommand } = await import('../commands/rm.ts');
        return await rmCommand(boxes, options, context);
      }),
    );
  root
    .command('prune')
    .description(
      'remove what is no longer needed from the engine in use: sandboxes whose workspace is gone or that were stopped long ago, and networks, volumes and images that are left over',
    )
    .option('--dry-run', 'only say what, and why')
    .option('--older-than <duration>', 'sandboxes stopped for so long (default 15d)', durationValue)
    .option('--agent <name>', 'only sandboxes of this agent, with their services, networks and volumes')
    .option('--json', 'machine-readable output')
    .addOption(engineOption())
    .addHelpText(
      'after',
      examples(
        'sally prune --dry-run',
        'sally prune --older-than 2d',
        'sally prune --agent claude --dry-run',
      ),
    )
    .action((options) =>
      act({ ...options, engineInUse: options.engine }, async () => {
        const { pruneCommand } = await import('../commands/prune.ts');
        return await pruneCommand(options, context);
      }),
    );
  root
    .command('reset')
    .description('remove all your sandboxes, with everything in them')
    .option('-y, --yes', 'do not ask')
    .addHelpText('after', examples('sally reset', 'sally reset --yes'))
    .action((options) =>
      act({}, async () => {
        const { resetCommand } = await import('../commands/reset.ts');
        return await resetCommand(options, context);
      }),
    );
}
