/** Verbs about files inside: cp, inject, and files with its own verbs. A place inside is written `box:path`. */

import { modeValue } from '../options/values.ts';
import { examples, type Registry } from './registry.ts';

const place = 'where, as box:path; a path without / at its start begins where commands start';

export function registerFileVerbs(registry: Registry): void {
  registerCp(registry);
  registerInject(registry);
  registerReading(registry);
}

function registerCp({ root, context, act }: Registry): void {
  root
    .command('cp')
    .description('copy files and folders into a sandbox or out of it')
    .argument('<source>', 'a path of this machine, or box:path')
    .argument('<target>', 'a path of this machine, or box:path; one of the two is in a sandbox')
    .option('--json', 'machine-readable output')
    .addHelpText(
      'after',
      `
A folder that is there is copied into; else the target is the new name. source/. copies what is in a folder.
What comes out of a sandbox never leaves the target: links out of it and devices are left out and named, set-id bits dropped.
${examples('sally cp notes.txt web:/tmp/', 'sally cp web:/workspace/out ./out', 'sally cp ./src/. web:/workspace')}`,
    )
    .action((source, target, options) =>
      act(options, async () => {
        const { cpCommand } = await import('../commands/cp.ts');
        return await cpCommand(source, target, options, context);
      }),
    );
}

function registerInject({ root, context, act }: Registry): void {
  root
    .command('inject')
    .description('put files where a sandbox expects them; prints how many went in')
    .argument('<box>', 'name or id of a sandbox')
    .argument('<files...>', 'files of this machine')
    .option('--json', 'machine-readable output')
    .addHelpText(
      'after',
      `
A file below this folder keeps its path relative to it, in the workspace of the sandbox; any other goes there by its name.
Without a workspace that is the folder in which its commands start.
Folders above a file are made. What is there is replaced; a link on the way is refused.
A file that is not there, or with which all holes exceed 16 GiB, is left out with a warning.
${examples('sally inject web .env src/settings.json', 'sally inject web ~/notes.txt', 'sally inject web --json -- -odd-name')}`,
    )
    .action((box, files, options) =>
      act(options, async () => {
        const { injectCommand } = await import('../commands/inject.ts');
        return await injectCommand(box, files, options, context);
      }),
    );
}

function registerReading({ root, context, act }: Registry): void {
  const files = root
    .command('files')
    .description('look at files inside a sandbox and change them, as its user')
    .addHelpText(
      'after',
      examples('sally files ls web:/etc', 'sally files cat web:out.txt', 'sally files --help'),
    );
  files
    .command('ls')
    .description('what is in a folder')
    .argument('<place>', place)
    .option('-l, --long', 'with mode, owner, size and time')
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('sally files ls web:/etc', 'sally files ls -l web:'))
    .action((at, options) =>
      act(options, async () => {
        const { filesLs } = await import('../commands/files.ts');
        return await filesLs(at, options, context);
      }),
    );
  files
    .command('cat')
    .description('the content of a file')
    .argument('<place>', place)
    .addHelpText('after', examples('sally files cat web:/etc/os-release'))
    .action((at) =>
      act({}, async () => {
        const { filesCat } = await import('../commands/files.ts');
        return await filesCat(at, context);
      }),
    );
  files
    .command('write')
    .description('write this input to a file; it is there only when all of it is')
    .argument('<place>', place)
    .option('-a, --append', 'add to the file instead')
    .option('--mode <octal>', 'permission bits (default: those that are there, or 644)', modeValue)
    .addHelpText(
      'after',
      examples(
        'echo hello | sally files write web:/tmp/hello',
        'sally files write --mode 755 web:run.sh < run.sh',
      ),
    )
    .action((at, options) =>
      act({}, async () => {
        const { filesWrite } = await import('../commands/files.ts');
        return await filesWrite(at, options, context);
      }),
    );
  files
    .command('stat')
    .description('what a path names')
    .argument('<place>', place)
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('sally files stat web:/etc/passwd'))
    .action((at, options) =>
      act(options, async () => {
        const { filesStat } = await import('../commands/files.ts');
        return await filesStat(at, options, context);
      }),
    );
  registerChanging(files, { root, context, act });
}

function registerChanging(files: Pick<Registry['root'], 'command'>, { context, act }: Registry): void {
  files
    .command('mkdir')
    .description('make a folder')
    .argument('<place>', place)
    .option('-p, --parents', 'also those above it; one that is there is no error')
    .addHelpText('after', examples('sally files mkdir -p web:a/b/c'))
    .action((at, options) =>
      act({}, async () => {
        const { filesMkdir } = await import('../commands/files.ts');
        return await filesMkdir(at, options, context);
      }),
    );
  files
    .command('rm')
    .description('remove a file, or with -r a folder')
    .argument('<place>', place)
    .option('-r, --recursive', 'a folder with all that is in it')
    .addHelpText('after', examples('sally files rm web:/tmp/hello', 'sally files rm -r web:build'))
    .action((at, options) =>
      act({}, async () => {
        const { filesRm } = await import('../commands/files.ts');
        return await filesRm(at, options, context);
      }),
    );
  files
    .command('mv')
    .description('rename a file or a folder')
    .argument('<place>', place)
    .argument('<path>', 'the new path in the same sandbox')
    .addHelpText('after', examples('sally files mv web:a.txt b.txt'))
    .action((at, path) =>
      act({}, async () => {
        const { filesMv } = await import('../commands/files.ts');
        return await filesMv(at, path, context);
      }),
    );
  files
    .command('watch')
    .description('what changes in a folder, as it happens, until Ctrl-C')
    .argument('<place>', place)
    .option('-r, --recursive', 'also in the folders below')
    .option('--json', 'one JSON object a line')
    .addHelpText('after', examples('sally files watch web:/workspace -r'))
    .action((at, options) =>
      act(options, async () => {
        const { filesWatch } = await import('../commands/files.ts');
        return await filesWatch(at, options, context);
      }),
    );
}
