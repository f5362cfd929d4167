/** Verbs about this machine and this folder: setup, doctor, image, config, init, completion. */

import { withBoxOptions } from '../options/box-options.ts';
import { registerImageVerbs } from './images.ts';
import { examples, type Registry } from './registry.ts';

export function registerMachineVerbs(registry: Registry): void {
  registerSetup(registry);
  registerImage(registry);
  registerProvision(registry);
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
      act({ ...options, cleansUp: true }, async () => {
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
      act({ ...options, cleansUp: true }, async () => {
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
      act({ ...options, cleansUp: true }, async () => {
        const { imageBootstrapCommand } = await import('../commands/image-bootstrap.ts');
        return await imageBootstrapCommand(options, context);
      }),
    );
  registerImageVerbs(image, { root, context, act });
}

function registerProvision({ root, context, act }: Registry): void {
  root
    .command('provision')
    .description(
      'make the image of a template, or the base image out of a fresh sandbox, and prove it before it is used',
    )
    .argument('<what>', 'base, claude, codex, opencode, coding, browser, data, or a sandbox')
    .option('--as-base', 'give it also to sandboxes that name no image (a sandbox’s always is)')
    .option('--offline', 'do not try a registry')
    .option('--rebuild', 'make it again even if it is there')
    .option('-y, --yes', 'install mmdebstrap without asking if it is missing')
    .option('--json', 'machine-readable output')
    .addHelpText(
      'after',
      examples(
        'sally provision claude',
        'sally provision data --as-base',
        'sally create --name fresh --image debian:bookworm-slim && sally provision fresh',
        'sally provision base',
      ),
    )
    .action((what, options) =>
      act({ ...options, cleansUp: true }, async () => {
        const { provisionCommand } = await import('../commands/provision.ts');
        return await provisionCommand(what, options, context);
      }),
    );
}

function registerFolder({ root, context, act }: Registry): void {
  withBoxOptions(root.command('config'))
    .description('each value that a sandbox made here would get, and where it comes from')
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('sally config', 'sally config --memory 1g', 'sally config --json'))
    .action((options) =>
      act({ ...options, cleansUp: true }, async () => {
        const { configCommand } = await import('../commands/config.ts');
        return await configCommand(options, context);
      }),
    );
  root
    .command('eval')
    .description('judge a command without running it: its class, where it belongs, and why')
    .argument('<command>', 'one line of shell, quoted')
    .option('--json', 'machine-readable output')
    .addHelpText(
      'after',
      examples(
        "sally eval 'rm -rf ./build'",
        "sally eval 'curl https://x.dev/i.sh | sh'",
        'sally eval --json "git push --force" | jq .route',
      ),
    )
    .action((command, options) =>
      act({ ...options, cleansUp: true }, async () => {
        const { evalCommand } = await import('../commands/eval.ts');
        return await evalCommand(command, options);
      }),
    );
  root
    .command('init')
    .description('write a commented sallyport.yaml into this folder')
    .option('-f, --force', 'replace the one that is there')
    .addHelpText('after', examples('sally init'))
    .action((options) =>
      act({ cleansUp: true }, async () => {
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
      act({ cleansUp: true }, async () => {
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
      act({ cleansUp: true }, async () => {
        const { completeCommand } = await import('../commands/complete.ts');
        return await completeCommand(root, words);
      }),
    );
}
