/** Verbs about the program itself: upgrade, uninstall. */

import { examples, type Registry } from './registry.ts';

export function registerInstallationVerbs(registry: Registry): void {
  registerUpgrade(registry);
  registerUninstall(registry);
}

function registerUpgrade({ root, context, act }: Registry): void {
  root
    .command('upgrade')
    .description('print the commands that install the newest release')
    .option('--check', 'show whether a release is newer, and what changed')
    .option('--json', 'machine-readable output')
    .addHelpText(
      'after',
      `
Reads latest.json from SALLYPORT_RELEASES, a URL or a folder. There is no default: no release server exists yet.
${examples('sally upgrade --check', 'SALLYPORT_RELEASES=/mnt/releases sally upgrade --check --json')}`,
    )
    .action((options) =>
      act({ ...options, cleansUp: true }, async () => {
        const { upgradeCommand } = await import('../commands/upgrade.ts');
        return await upgradeCommand(options, context);
      }),
    );
}

function registerUninstall({ root, context, act }: Registry): void {
  root
    .command('uninstall')
    .description('remove Sallyport from this machine: sandboxes, daemon, private engine, state, program')
    .option('-y, --yes', 'do not ask')
    .option('--dry-run', 'only show what would be removed and what would be kept')
    .option('--purge', 'also remove secrets, audit and configuration')
    .option('-f, --force', 'also with changes that exist nowhere else, or without an engine that answers')
    .option('--json', 'machine-readable output')
    .addHelpText(
      'after',
      `
Removes only what carries Sallyport's labels and belongs to this user and state folder. Secrets, audit, configuration and
Debian packages are kept and named. The private engine is kept while others use it.
${examples('sally uninstall --dry-run', 'sally uninstall', 'sally uninstall --yes --purge')}`,
    )
    .action((options) =>
      act({ ...options, cleansUp: true }, async () => {
        const { uninstallCommand } = await import('../commands/uninstall.ts');
        return await uninstallCommand(options, context);
      }),
    );
}
