/** Verbs about what a sandbox did to its workspace: diff and apply for a copy, fetch for a clone. */

import { collect } from '../options/values.ts';
import { examples, type Registry } from './registry.ts';

const box = "name, id or start of an id; without it, or as `:`, this folder's";

export function registerResultVerbs({ root, context, act }: Registry): void {
  root
    .command('fetch')
    .description('bring the commits of a private clone into refs/sallyport/<box>/* of the repository')
    .argument('[box]', box)
    .option('--json', 'machine-readable output')
    .addHelpText(
      'after',
      `
Nothing is checked out and no branch moves: look at them with \`git log refs/sallyport/BOX/BRANCH\`.
${examples('sally fetch', 'sally fetch web')}`,
    )
    .action((of, options) =>
      act(options, async () => {
        const { fetchCommand } = await import('../commands/fetch.ts');
        return await fetchCommand(of, options, context);
      }),
    );
  root
    .command('diff')
    .description('show what changed in a copied workspace, as a patch that git can apply')
    .argument('[box]', box)
    .argument('[paths...]', 'only these files and folders of the workspace')
    .option('--stat', 'how many lines of each file')
    .option('--name-only', 'only the names, with A for added, M for changed, D for removed')
    .option('--exit-code', 'end with 1 if anything changed')
    .option('--json', 'machine-readable output: every changed path with both sides')
    .addHelpText(
      'after',
      examples('sally diff', 'sally diff web src', 'sally diff web --stat', 'sally diff web > web.patch'),
    )
    .action((of, paths, options) =>
      act(options, async () => {
        const { diffCommand } = await import('../commands/diff.ts');
        return await diffCommand(of, paths, options, context);
      }),
    );
  root
    .command('apply')
    .description('bring the changes of a copied workspace back to this machine')
    .argument('[box]', box)
    .option('--patch <file>', 'write them as a patch instead; - is standard output')
    .option('--to <folder>', 'bring them to this folder instead of the one that was copied')
    .option(
      '--as-branch <name>',
      'commit them on a new branch from HEAD instead, and leave the work tree alone',
    )
    .option('--dry-run', 'decide everything and write nothing')
    .option('--force', 'overwrite what was changed here as well')
    .option('--skip-conflicts', 'leave what was changed here as well, and write the rest')
    .option(
      '--include-protected <path>',
      'also this path, which the machine may execute unasked; may be repeated',
      collect,
    )
    .option('--keep-links', 'also links that lead out of the folder')
    .option('--json', 'machine-readable output')
    .addHelpText(
      'after',
      `
A path that was changed on both sides is a conflict. With a conflict nothing at all is written, and the exit code is 1.
${examples('sally apply', 'sally apply web --dry-run', 'sally apply web --as-branch from-web', 'sally apply web --patch web.patch')}`,
    )
    .action((of, options) =>
      act({ ...options, cleansUp: true }, async () => {
        const { applyCommand } = await import('../commands/apply.ts');
        return await applyCommand(of, options, context);
      }),
    );
}
