/** Verbs about the daemon: daemon with its own verbs, events, version. */

import { countValue } from '../options/values.ts';
import { engineOption, examples, type Registry } from './registry.ts';

export function registerDaemonVerbs(registry: Registry): void {
  registerDaemon(registry);
  const { root, context, act } = registry;
  root
    .command('events')
    .description('what happened to sandboxes and commands, numbered')
    .argument('[box]', 'only of this sandbox')
    .option('-f, --follow', 'go on with what comes, until Ctrl-C')
    .option('--since <number>', 'begin after this number (default: all that are kept)', countValue)
    .option('--json', 'one JSON object a line')
    .addHelpText('after', examples('sally events -f', 'sally events web --json', 'sally events --since 120'))
    .action((box, options) =>
      act(options, async () => {
        const { eventsCommand } = await import('../commands/events.ts');
        return await eventsCommand(box, options, context);
      }),
    );
  root
    .command('version')
    .description('the versions of this program, of the daemon that runs, and of its engine')
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('sally version', 'sally version --json'))
    .action((options) =>
      act(options, async () => {
        const { versionCommand } = await import('../commands/version.ts');
        return await versionCommand(options);
      }),
    );
}

function registerDaemon({ root, context, act }: Registry): void {
  const daemon = root
    .command('daemon')
    .description('the process that holds the sandboxes of one engine (starts on demand)')
    .addHelpText('after', examples('sally daemon status', 'sally daemon stop --keep'));
  daemon
    .command('start')
    .description('start it if it does not run')
    .option(
      '--listen <address:port>',
      'also on a TCP port, with the token in the file `token` of the state folder',
    )
    .option(
      '--dangerously-listen-anywhere',
      'allow an address of --listen that is not loopback: there is no TLS',
    )
    .option('--json', 'machine-readable output')
    .addOption(engineOption())
    .addHelpText('after', examples('sally daemon start', 'sally daemon start --listen 127.0.0.1:7070'))
    .action((options) =>
      act({ ...options, engineInUse: options.engine }, async () => {
        const { daemonStart } = await import('../commands/daemon.ts');
        return await daemonStart(options, context);
      }),
    );
  daemon
    .command('stop')
    .description('stop it and the sandboxes, which start again fast')
    .option('--keep', 'leave the sandboxes running')
    .option('--all', 'the daemons of all engines')
    .addOption(engineOption())
    .addHelpText(
      'after',
      examples('sally daemon stop', 'sally daemon stop --keep', 'sally daemon stop --all'),
    )
    .action((options) =>
      act({ engineInUse: options.engine }, async () => {
        const { daemonStop } = await import('../commands/daemon.ts');
        return await daemonStop(options, context);
      }),
    );
  daemon
    .command('status')
    .description('whether it runs, and what it has; ends with 1 if it does not')
    .option('--json', 'machine-readable output')
    .addOption(engineOption())
    .addHelpText('after', examples('sally daemon status', 'sally daemon status --json | jq .pid'))
    .action((options) =>
      act({ ...options, engineInUse: options.engine }, async () => {
        const { daemonStatus } = await import('../commands/daemon.ts');
        return await daemonStatus(options, context);
      }),
    );
  daemon
    .command('logs')
    .description('its own log')
    .option('-n, --tail <lines>', 'only the last lines (default: 100)', countValue)
    .option('-f, --follow', 'go on with what comes, until Ctrl-C')
    .addOption(engineOption())
    .addHelpText('after', examples('sally daemon logs', 'sally daemon logs -f --tail 20'))
    .action((options) =>
      act({ engineInUse: options.engine }, async () => {
        const { daemonLogs } = await import('../commands/daemon.ts');
        return await daemonLogs(options, context);
      }),
    );
}
