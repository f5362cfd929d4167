/** The hidden verb behind the completion scripts. It starts no daemon, and says nothing when something is wrong. */

import { readClientEnvironment } from '../../sdk/config.ts';
import { allSandboxNames } from '../../sdk/other-engines.ts';
import { completeWords, type VerbTree } from '../complete-words.ts';
import { exitCode } from '../exit-codes.ts';
import { print } from '../output.ts';

export async function completeCommand(root: VerbTree, line: readonly string[]): Promise<number> {
  const { words, boxes } = completeWords(root, line);
  const names = boxes === undefined ? [] : boxNames(line.at(-1) ?? '', boxes === 'place' ? ':' : '');
  for (const word of [...words, ...names]) print(word);
  return exitCode.ok;
}

function boxNames(begun: string, end: string): readonly string[] {
  try {
    const names = allSandboxNames(readClientEnvironment().stateDir);
    return names.map((name) => `${name}${end}`).filter((name) => name.startsWith(begun));
  } catch {
    return [];
  }
}
