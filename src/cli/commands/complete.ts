/** The hidden verb behind the completion scripts. It starts no daemon, and says nothing when something is wrong. */

import type { SandboxView } from '../../protocol/views.ts';
import { DaemonClient } from '../../sdk/client.ts';
import { completeWords, type VerbTree } from '../complete-words.ts';
import { exitCode } from '../exit-codes.ts';
import { print } from '../output.ts';

export async function completeCommand(root: VerbTree, line: readonly string[]): Promise<number> {
  const { words, boxes } = completeWords(root, line);
  const names = boxes === undefined ? [] : await boxNames(line.at(-1) ?? '', boxes === 'place' ? ':' : '');
  for (const word of [...words, ...names]) print(word);
  return exitCode.ok;
}

async function boxNames(begun: string, end: string): Promise<readonly string[]> {
  const client = new DaemonClient({ startDaemon: false, anyEngine: true });
  try {
    const { sandboxes } = await client.json<{ sandboxes: SandboxView[] }>('GET', '/v1/sandboxes');
    return sandboxes.map(({ name }) => `${name}${end}`).filter((name) => name.startsWith(begun));
  } catch {
    return [];
  } finally {
    client.close();
  }
}
