/** The command line as a parser and what a call of it came to. Its verbs are registered by `verbs/`. */

import { Command, CommanderError } from '@commander-js/extra-typings';
import { packageInfo } from '../lib/package-root.ts';
import { useEngine } from './config.ts';
import type { SignalDesk } from './context.ts';
import { exitCode } from './exit-codes.ts';
import { harmless } from './harmless.ts';
import type { Registry, VerbKind } from './verbs/registry.ts';

export interface CliRun {
  readonly root: Command;
  readonly main: (argv: readonly string[]) => Promise<number>;
  readonly wantsJson: () => boolean;
  readonly verbKind: () => VerbKind;
}

export function program(context: SignalDesk, register: (registry: Registry) => void): CliRun {
  let code: number = exitCode.ok;
  let json = false;
  let kind: VerbKind = 'plain';

  const root = new Command('sally')
    .description('A sealed box with one door, in which to run AI agents and code you do not trust.')
    .version(packageInfo().version, '-V, --version')
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(harmless(usageError(text))) })
    .showHelpAfterError("(add --help to see how it's used)")
    .enablePositionalOptions();

  const registry: Registry = {
    root,
    context,
    act: async (verb, work) => {
      kind = verb.kind ?? 'plain';
      json = verb.json === true;
      if (verb.engineInUse !== undefined) useEngine(verb.engineInUse);
      if (kind === 'passThrough' || verb.cleansUp === true) context.allowCleanUp();
      code = await work();
    },
  };
  register(registry);

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

/** The parser's words with our prefix: what is wrong, then what may have been meant. */
function usageError(text: string): string {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => {
      const meant = /^\(Did you mean (.*)\?\)$/.exec(line)?.[1];
      const words = meant === undefined ? line.replace(/^error: /, '') : `did you mean ${meant}?`;
      return `sally: ${words}\n`;
    })
    .join('');
}
