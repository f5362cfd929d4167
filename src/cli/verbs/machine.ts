/** Verbs about this machine and this folder: setup, doctor, image, config, init, completion. */

import { withBoxOptions } from '../options/box-options.ts';
import { examples, type Registry } from './registry.ts';

export function registerMachineVerbs(registry: Registry): void {
  registerSetup(registry);
  registerImage(registry);
  registerFolder(registry);
}

function registerSetup({ root, context, act }: Registry): void {
  root
    .command('setup')
    .description('find a container engine, start one, or install one')
    .option('--status', 'only show which engine is used and whether it runs')
    .option('--stop', 'stop the private engine that Sallyport started')
    .option('-y, --yes', 'install what is missing without asking')
    .option('--json', 'machine-readable output')
    .addHelpText(
      'after',
      examples('sally setup', 'sally setup --yes', 'sally setup --status --json', 'sally setup --stop'),
    )
    .action((options) =>
      act(options, async () => {
        const { setupCommand } = await import('../commands/setup.ts');
        return await setupCommand(options, context);
      }),
    );
  root
    .command('doctor')
    .description('check this machine: engine, versions, isolation, disk')
    .option('--json', 'machine-readable output')
    .addHelpText(
      'after',
      examples('sally doctor', 'sally doctor --json | jq \'.checks[] | select(.status != "ok")\''),
    )
    .action((options) =>
      act(options, async () => {
        const { doctorCommand } = await import('../commands/doctor.ts');
        return await doctorCommand(options, context);
      }),
    );
}

function registerImage({ root, context, act }: Registry): void {
  const image = root.command('image').description('images that sandboxes are made from');
  image
    .command('bootstrap')
    .description(
      'make the base image: pulled where a registry answers, else from the distribution’s packages',
    )
    .option('--test', 'make the small test image instead')
    .option('--offline', 'do not try a registry')
    .option('--rebuild', 'make it again even if it is there')
    .option('-y, --yes', 'install mmdebstrap without asking if it is missing')
    .option('--json', 'machine-readable output')
    .addHelpText(
      'after',
      examples('sally image bootstrap', 'sally image bootstrap --offline', 'sally image bootstrap --json'),
    )
    .action((options) =>
      act(options, async () => {
        const { imageBootstrapCommand } = await import('../commands/image-bootstrap.ts');
        return await imageBootstrapCommand(options, context);
      }),
    );
}

function registerFolder({ root, context, act }: Registry): void {
  withBoxOptions(root.command('config'))
    .description('each value that a sandbox made here would get, and where it comes from')
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('sally config', 'sally config --memory 1g', 'sally config --json'))
    .action((options) =>
      act(options, async () => {
        const { configCommand } = await import('../commands/config.ts');
        return await configCommand(options, context);
      }),
    );
  root
    .command('init')
    .description('write a commented sallyport.yaml into this folder')
    .option('-f, --force', 'replace the one that is there')
    .addHelpText('after', examples('sally init'))
    .action((options) =>
      act({}, async () => {
        const { initCommand } = await import('../commands/init.ts');
        return await initCommand(options);
      }),
    );
  root
    .command('completion')
    .description('print the completion script of a shell')
    .argument('<shell>', 'bash, zsh or fish')
    .addHelpText(
      'after',
      examples(
        'sally completion bash > /etc/bash_completion.d/sally',
        'sally completion zsh > ~/.zfunc/_sally',
        'sally completion fish > ~/.config/fish/completions/sally.fish',
      ),
    )
    .action((shell) =>
      act({}, async () => {
        const { completionCommand } = await import('../commands/completion.ts');
        return completionCommand(shell);
      }),
    );
  root
    .command('__complete', { hidden: true })
    .argument('[words...]', 'what is on the line so far; the last word is being written')
    .allowUnknownOption()
    .passThroughOptions()
    .action((words) =>
      act({}, async () => {
        const { completeCommand } = await import('../commands/complete.ts');
        return await completeCommand(root, words);
      }),
    );
}
