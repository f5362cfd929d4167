/** One act on several sandboxes: each is tried, what fails is said, and then the whole has failed. */

import { exitCode } from './exit-codes.ts';
import { print, sayError } from './output.ts';

export async function onEach(boxes: readonly string[], act: (box: string) => Promise<void>): Promise<number> {
  const [only] = boxes;
  if (only !== undefined && boxes.length === 1) {
    await act(only);
    print(only);
    return exitCode.ok;
  }
  const outcomes = await Promise.allSettled(boxes.map(act));
  for (const [index, outcome] of outcomes.entries()) {
    if (outcome.status === 'fulfilled') print(boxes[index] ?? '');
    else sayError(outcome.reason);
  }
  return outcomes.every(({ status }) => status === 'fulfilled') ? exitCode.ok : exitCode.failed;
}
