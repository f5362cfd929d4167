/** The command line: every verb with its options and examples. A verb's code is loaded when it is called, not before. */

import { Command, CommanderError, InvalidArgumentError, Option } from '@commander-js/extra-typings';
import { parseDuration } from '../lib/durations.ts';
import { packageInfo } from '../lib/package-root.ts';
import { parseSize } from '../lib/sizes.ts';
import { exitCode } from './exit-codes.ts';

export interface CliContext {
  /** Fires at the first Ctrl-C, TERM or HUP. */
  readonly signal: AbortSignal;
}

export interface CliRun {
  readonly root: Command;
  readonly main: (argv: readonly string[]) => Promise<number>;
  readonly wantsJson: () => boolean;
  readonly verbKind: () => 'plain' | 'passThrough';
}

const examples = (...lines: readonly string[]): string =>
  `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`;

function sizeOption(text: string): number {
  const bytes = parseSize(text);
  if (bytes === undefined || bytes === 0) throw new InvalidArgumentError('Write a size like 512m or 4g.');
  return bytes;
}

function cpusOption(text: string): number {
  const cpus = Number(text);
  if (!/^\d+(\.\d+)?$/.test(text) || cpus <= 0)
    throw new InvalidArgumentError('Write a number like 0.5 or 2.');
  return cpus;
}

function durationOption(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined || ms === 0) throw new InvalidArgumentError('Write a duration like 30s, 5m or 1h30m.');
  return ms;
}

function countOption(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('Write a whole number above zero.');
  return Number(text);
}

/** What decides how a box is made. */
function withBoxOptions(command: Command) {
  return command
    .argument('<command...>', 'the program and its arguments, after --')
    .option('--image <reference>', 'image to run in (default: the base image)')
    .addOption(
      new Option('--profile <name>', 'how much is allowed (default: standard)').choices([
        'standard',
        'strict',
      ] as const),
    )
    .option('--runtime <name>', "container runtime, such as runsc (default: the engine's)")
    .option('-m, --memory <size>', 'memory limit (default: 4g)', sizeOption)
    .option('--cpus <number>', 'CPU limit (default: 2)', cpusOption)
    .option('--pids <number>', 'limit of processes and threads (default: 512)', countOption)
    .option('-e, --env <NAME=value...>', 'environment variable for the command; nothing else is passed in');
}

export function program(context: CliContext): CliRun {
  let code: number = exitCode.ok;
  let json = false;
  let kind: 'plain' | 'passThrough' = 'plain';
  const { version } = packageInfo();

  const root = new Command('sally')
    .description('A sealed box with one door, in which to run AI agents and code you do not trust.')
    .version(version, '-V, --version')
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(`sally: ${text.replace(/^error: /, '')}`) })
    .showHelpAfterError("(add --help to see how it's used)")
    .enablePositionalOptions();

  withBoxOptions(root.command('run'))
    .description('run a command in a new sandbox, then remove the sandbox')
    .option('-i, --interactive', 'pass this input to the command, also from a terminal')
    .option('-t, --tty', 'give the command a terminal')
    .option(
      '--timeout <duration>',
      'end the command and all that it started after this time: 30s, 5m',
      durationOption,
    )
    .option('--timings', 'say afterwards how long each step took')
    .passThroughOptions()
    .addHelpText(
      'after',
      examples(
        'sally run -- id',
        'sally run -it -- bash',
        'sally run --memory 512m --timeout 10s -- python3 -c "print(6 * 7)"',
        'sally run --profile strict -- sh -c "ls /"',
        'sally run -e NAME=ada -- env',
      ),
    )
    .action(async (command, options) => {
      kind = 'passThrough';
      const { runCommand } = await import('./commands/run.ts');
      code = await runCommand(command, options, context);
    });

  withBoxOptions(root.command('explain'))
    .description('show what run would ask of the engine, and make nothing')
    .option('--json', 'machine-readable output')
    .passThroughOptions()
    .addHelpText('after', examples('sally explain -- id', 'sally explain --profile strict --json -- true'))
    .action(async (command, options) => {
      json = options.json === true;
      const { explainCommand } = await import('./commands/explain.ts');
      code = await explainCommand(command, options);
    });

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
    .action(async (options) => {
      json = options.json === true;
      const { setupCommand } = await import('./commands/setup.ts');
      code = await setupCommand(options, context);
    });

  root
    .command('doctor')
    .description('check this machine: engine, versions, isolation, disk')
    .option('--json', 'machine-readable output')
    .addHelpText(
      'after',
      examples('sally doctor', 'sally doctor --json | jq \'.checks[] | select(.status != "ok")\''),
    )
    .action(async (options) => {
      json = options.json === true;
      const { doctorCommand } = await import('./commands/doctor.ts');
      code = await doctorCommand(options, context);
    });

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
    .action(async (options) => {
      json = options.json === true;
      const { imageBootstrapCommand } = await import('./commands/image-bootstrap.ts');
      code = await imageBootstrapCommand(options, context);
    });

  const main = async (argv: readonly string[]): Promise<number> => {
    try {
      await root.parseAsync([...argv], { from: 'user' });
      return code;
    } catch (error) {
      if (!(error instanceof CommanderError)) throw error;
      return error.exitCode === 0 ? exitCode.ok : exitCode.usage;
    }
  };
  return { root: root as unknown as Command, main, wantsJson: () => json, verbKind: () => kind };
}
