/** Verbs about images: ls, build, rebuild, why, log, rm, prune. `bootstrap` is with the machine's verbs. */

import { collect } from '../options/values.ts';
import { engineOption, examples, type Registry } from './registry.ts';

type ImageGroup = Pick<Registry['root'], 'command'>;

const folderWords = 'the folder with the Dockerfile.sallyport (default: this one)';
const argWords = 'value of an ARG of the Dockerfile; may be repeated (default: build.args of sallyport.yaml)';

export function registerImageVerbs(image: ImageGroup, registry: Registry): void {
  registerLooking(image, registry);
  registerBuilding(image, registry);
  registerRemoving(image, registry);
}

function registerLooking(image: ImageGroup, { context, act }: Registry): void {
  image
    .command('ls')
    .description('the images of Sallyport, their sizes and what uses them')
    .option('-a, --all', 'also the copies that were made for the users of sandboxes')
    .option('--json', 'machine-readable output')
    .addOption(engineOption())
    .addHelpText('after', examples('sally image ls', 'sally image ls --json'))
    .action((options) =>
      act({ ...options, cleansUp: true, engineInUse: options.engine }, async () => {
        const { imageLs } = await import('../commands/image.ts');
        return await imageLs(options, context);
      }),
    );
  image
    .command('why')
    .description('which input of the image of a folder changed since its last build')
    .argument('[folder]', folderWords)
    .option('--build-arg <NAME=value>', argWords, collect)
    .option('--json', 'machine-readable output')
    .addOption(engineOption())
    .addHelpText('after', examples('sally image why', 'sally image why ~/src/web --json'))
    .action((folder, options) =>
      act({ ...options, cleansUp: true, engineInUse: options.engine }, async () => {
        const { imageWhy } = await import('../commands/image.ts');
        return await imageWhy(folder, options, context);
      }),
    );
  image
    .command('log')
    .description('the whole output of the last build of a folder')
    .argument('[folder]', folderWords)
    .addOption(engineOption())
    .addHelpText('after', examples('sally image log', 'sally image log ~/src/web'))
    .action((folder, options) =>
      act({ cleansUp: true, engineInUse: options.engine }, async () => {
        const { imageLog } = await import('../commands/image.ts');
        return await imageLog(folder, context);
      }),
    );
}

function registerBuilding(image: ImageGroup, { context, act }: Registry): void {
  image
    .command('build')
    .description('build the Dockerfile.sallyport of a folder, unless nothing changed')
    .argument('[folder]', folderWords)
    .option('--build-arg <NAME=value>', argWords, collect)
    .option('--no-network', 'its commands have no network')
    .option('--rebuild', 'ask registries for newer bases, and do every step again')
    .option('--approve', 'approve what the Dockerfile asks for')
    .option('--json', 'machine-readable output')
    .addOption(engineOption())
    .addHelpText('after', examples('sally image build', 'sally image build ~/src/web --build-arg VERSION=3'))
    .action((folder, options) =>
      act({ ...options, cleansUp: true, engineInUse: options.engine }, async () => {
        const { imageBuild } = await import('../commands/image.ts');
        return await imageBuild(folder, options, context);
      }),
    );
  image
    .command('rebuild')
    .description('the same as build --rebuild')
    .argument('[folder]', folderWords)
    .option('--build-arg <NAME=value>', argWords, collect)
    .option('--no-network', 'its commands have no network')
    .option('--approve', 'approve what the Dockerfile asks for')
    .option('--json', 'machine-readable output')
    .addOption(engineOption())
    .addHelpText('after', examples('sally image rebuild', 'sally image rebuild ~/src/web'))
    .action((folder, options) =>
      act({ ...options, cleansUp: true, engineInUse: options.engine }, async () => {
        const { imageBuild } = await import('../commands/image.ts');
        return await imageBuild(folder, { ...options, rebuild: true }, context);
      }),
    );
}

function registerRemoving(image: ImageGroup, { context, act }: Registry): void {
  image
    .command('rm')
    .description('remove images that no sandbox needs')
    .argument('<images...>', 'names or ids, as `sally image ls` shows them')
    .option('--dry-run', 'only say what would go, with its size')
    .addOption(engineOption())
    .addHelpText('after', examples('sally image rm sallyport-web:3f2a9c1b7d50'))
    .action((images, options) =>
      act({ cleansUp: true, engineInUse: options.engine }, async () => {
        const { imageRm } = await import('../commands/image.ts');
        return await imageRm(images, options, context);
      }),
    );
  image
    .command('prune')
    .description('remove builds that a later one replaced, and those of folders that are gone')
    .option('--dry-run', 'only say what would go, with its size')
    .option('--json', 'machine-readable output')
    .addOption(engineOption())
    .addHelpText('after', examples('sally image prune --dry-run', 'sally image prune'))
    .action((options) =>
      act({ ...options, cleansUp: true, engineInUse: options.engine }, async () => {
        const { imagePrune } = await import('../commands/image.ts');
        return await imagePrune(options, context);
      }),
    );
}
