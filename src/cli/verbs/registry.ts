/** What a file that registers verbs is given, and how examples are shown. */

import { type Command, Option } from '@commander-js/extra-typings';
import { type EngineName, engineNames } from '../../protocol/engine-environment.ts';
import type { CliContext } from '../context.ts';

/** `passThrough`: its exit code is that of the command that it runs, so failures of our own are 125. */
export type VerbKind = 'plain' | 'passThrough';

export interface Registry {
  readonly root: Command;
  readonly context: CliContext;
  readonly act: (
    verb: {
      readonly kind?: VerbKind;
      readonly json?: true | undefined;
      /** Of a verb that asks one daemon and makes no sandbox: the engine of that daemon. Absent or `auto`: the one in use. */
      readonly engineInUse?: EngineName | undefined;
      /** It undoes on this machine what an interruption leaves half done, and gets the time for it. */
      readonly cleansUp?: true;
    },
    work: () => Promise<number>,
  ) => Promise<void>;
}

export const engineOption = () =>
  new Option('--engine <name>', 'engine whose daemon is asked (default: the engine in use)').choices(
    engineNames,
  );

export const examples = (...lines: readonly string[]): string =>
  `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`;

/** Of the words after the verb: `--` right before the first of them says that none is the name of a sandbox. */
export function startsWithCommand(command: {
  readonly parent: unknown;
  readonly args: readonly string[];
}): boolean {
  const { rawArgs } = command.parent as { readonly rawArgs: readonly string[] };
  return rawArgs[rawArgs.length - command.args.length - 1] === '--';
}
