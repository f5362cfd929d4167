/** Verbs about what a sandbox may reach: net with its own verbs. */

import { examples, type Registry } from './registry.ts';

const box = 'name, id or start of an id';
const rules =
  'host, host:port, *.host, **.host, 10.1.0.0/16, or any of them with :port/tcp for other than HTTP and TLS';

export function registerNetVerbs({ root, context, act }: Registry): void {
  const net = root
    .command('net')
    .description('what a sandbox may reach, changed while it runs, and what was denied')
    .addHelpText(
      'after',
      examples('sally net log web -f', 'sally net allow web registry.npmjs.org', 'sally net ls web'),
    );
  for (const use of ['allow', 'deny'] as const) {
    net
      .command(use)
      .description(
        use === 'allow'
          ? 'allow hosts, at once and as long as the sandbox exists'
          : 'deny hosts, at once: it wins over every allow, and closes what is open',
      )
      .argument('<box>', box)
      .argument('<rule...>', rules)
      .option('--save [file]', 'also write them to the sallyport.yaml of this folder, or to this file')
      .option('--json', 'machine-readable output')
      .addHelpText(
        'after',
        examples(`sally net ${use} web example.com`, `sally net ${use} web '*.example.com' --save`),
      )
      .action((of, given, options) =>
        act(options, async () => {
          const { netChange } = await import('../commands/net.ts');
          return await netChange(use, of, given, options, context);
        }),
      );
  }
  net
    .command('ls')
    .description('the rules as they are now, and what was denied')
    .argument('<box>', box)
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('sally net ls web', 'sally net ls web --json'))
    .action((of, options) =>
      act(options, async () => {
        const { netLs } = await import('../commands/net.ts');
        return await netLs(of, options, context);
      }),
    );
  net
    .command('log')
    .description('every decision of the gate, with bytes and time')
    .argument('<box>', box)
    .option('-f, --follow', 'go on with what comes, until Ctrl-C')
    .option('--denied', 'only what was denied')
    .option('--json', 'one JSON object a line')
    .addHelpText('after', examples('sally net log web', 'sally net log web -f --denied'))
    .action((of, options) =>
      act(options, async () => {
        const { netLog } = await import('../commands/net.ts');
        return await netLog(of, options, context);
      }),
    );
  net
    .command('presets')
    .description('lists of hosts by a short name, for `--preset` and `egress.presets`')
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('sally net presets', 'sally net presets --json'))
    .action((options) =>
      act(options, async () => {
        const { netPresets } = await import('../commands/net.ts');
        return netPresets(options);
      }),
    );
}
