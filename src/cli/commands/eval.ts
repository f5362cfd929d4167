/** `sally eval '<command>'`: what the guard would do with it, and why. It runs nothing and asks nobody. */

import { readGuardEnvironment } from '../../guard/config.ts';
import { judge, readGuardRules } from '../../guard/judge.ts';
import type { Evaluation, Reason } from '../../policy/command-risk/risk.ts';
import type { CommandRoute } from '../../protocol/risk-classes.ts';
import { exitCode } from '../exit-codes.ts';
import { colours } from '../harmless.ts';
import { print, printJson } from '../output.ts';

export async function evalCommand(command: string, options: { readonly json?: true }): Promise<number> {
  const evaluation = judge(command, await readGuardRules(readGuardEnvironment()), process.cwd());
  if (options.json === true) printJson(evaluation);
  else printEvaluation(command, evaluation);
  return exitCode.ok;
}

const destinations: Readonly<Record<CommandRoute, (text: string) => string>> = {
  host: colours.green,
  sandbox: colours.yellow,
  deny: colours.red,
};

function printEvaluation(command: string, { route, class: riskClass, confirm, reasons }: Evaluation): void {
  print(
    `${destinations[route](route)}${confirm ? ', after you confirm it' : ''}  (${riskClass.replaceAll('_', ' ')})`,
  );
  for (const reason of reasons) {
    print('');
    for (const line of underlined(command, reason)) print(`  ${line}`);
    print(`  ${reason.rule.replaceAll('_', ' ')}: ${reason.text}`);
  }
}

/** The line on which it begins, with marks below; a control character would disturb the terminal, and has a stand-in. */
function underlined(command: string, { span }: Reason): readonly string[] {
  const from = command.lastIndexOf('\n', span.start - 1) + 1;
  const until = command.indexOf('\n', span.start);
  const line = command.slice(from, until === -1 ? command.length : until);
  const end = Math.min(Math.max(span.end, span.start + 1), from + line.length + 1);
  const marks = `${' '.repeat(Math.max(0, span.start - from))}${'^'.repeat(Math.max(1, end - span.start))}`;
  return [line.replace(/\p{Cc}|\p{Cf}/gu, '·'), colours.dim(marks)];
}
