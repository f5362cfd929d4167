/** Verbs about the program itself: upgrade, uninstall. */

import { examples, type Registry } from './registry.ts';

export function registerInstallationVerbs({ root, context, act }: Registry): void {
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
      act(options, async () => {
        const { upgradeCommand } = await import('../commands/upgrade.ts');
        return await upgradeCommand(options, context);
      }),
    );
}
