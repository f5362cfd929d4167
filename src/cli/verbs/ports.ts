/** Verbs about what of a sandbox this machine can reach. */

import { collect, collectPorts, durationValue, portValue, windowValue } from '../options/values.ts';
import { examples, type Registry } from './registry.ts';

export function registerPortVerbs({ root, context, act }: Registry): void {
  root
    .command('ports')
    .description('show and change which ports of a sandbox this machine can reach')
    .argument('<box>', 'name or id of a sandbox')
    .option('--publish <[[IP:]HOST:]BOX>', 'publish a port, also while it runs; may be repeated', collect)
    .option(
      '--unpublish <HOST>',
      'take one back, by its number on this machine; may be repeated',
      collectPorts,
    )
    .option('--json', 'machine-readable output')
    .addHelpText(
      'after',
      examples(
        'sally ports web',
        'sally ports web --publish 8080:3000',
        'sally ports web --publish 3000',
        'sally ports web --unpublish 8080',
      ),
    )
    .action((box, options) =>
      act(options, async () => {
        const { portsCommand } = await import('../commands/ports.ts');
        return await portsCommand(box, options, context);
      }),
    );
  root
    .command('open')
    .description('give a link to a port inside for your browser alone, and open it where there is a desktop')
    .argument('<box>', 'name or id of a sandbox')
    .argument('[port]', 'port inside (default: the first that is published)', portValue)
    .option('--path <path>', 'where the browser begins (default: /)')
    .option('--ttl <duration>', 'so long the browser gets in (default: 12h)', durationValue)
    .option('--no-browser', 'only print it')
    .option('--ls', 'show the previews that there are')
    .option('--revoke', 'end them: of this port, or all')
    .option('--json', 'machine-readable output')
    .addHelpText(
      'after',
      examples('sally open web 3000', 'sally open web 3000 --no-browser', 'sally open web --revoke'),
    )
    .action((box, port, options) =>
      act(options, async () => {
        const { openCommand } = await import('../commands/ports.ts');
        return await openCommand(box, port, options, context);
      }),
    );
  root
    .command('browser')
    .description('start Chromium in a sandbox and print where DevTools clients on this machine reach it')
    .argument('<box>', 'name or id of a sandbox whose image has Chromium')
    .option('--window <WIDTHxHEIGHT>', 'size of the window in pixels (default: 1280x720)', windowValue)
    .option('--port <HOST>', 'port of this machine (default: one that is free)', portValue)
    .option('--program <name>', 'Chromium inside, by name or path (default: chromium)')
    .option('--stop', 'end it and take its port back')
    .option('--json', 'machine-readable output')
    .addHelpText(
      'after',
      examples(
        'sally browser web',
        'sally browser web --window 1920x1080 --json',
        'sally browser web --stop',
      ),
    )
    .action((box, options) =>
      act(options, async () => {
        const { browserCommand } = await import('../commands/browser.ts');
        return await browserCommand(box, options, context);
      }),
    );
}
