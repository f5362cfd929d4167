/** What an uninstallation would do, as data that is shown before it is done; and doing it, step by step. */

import { isSallyportError } from '../../protocol/errors.ts';

export interface Thing {
  readonly kind: string;
  readonly name: string;
  /** Of what is kept or failed: why. */
  readonly why?: string;
  /** What removes it by hand. */
  readonly command?: string;
}

export interface Step {
  readonly thing: Thing;
  /** Idempotent: an uninstallation that failed half-way is called again. */
  readonly run: () => Promise<void>;
  /** Not done after a failure, because another attempt needs what it removes. */
  readonly onlyAfterSuccess: boolean;
}

export interface Plan {
  readonly steps: readonly Step[];
  readonly keeps: readonly Thing[];
}

export interface Outcome {
  readonly removed: readonly Thing[];
  readonly failed: readonly Thing[];
}

export async function carryOut(
  steps: readonly Step[],
  options: { readonly force: boolean; readonly onStep: (thing: Thing) => void },
): Promise<Outcome> {
  const removed: Thing[] = [];
  const failed: Thing[] = [];
  for (const { thing, run, onlyAfterSuccess } of steps) {
    if (onlyAfterSuccess && failed.length > 0 && !options.force) {
      failed.push({ ...thing, why: 'it is needed to try again, as something before it failed' });
      continue;
    }
    options.onStep(thing);
    try {
      await run();
      removed.push(thing);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      const advice = isSallyportError(error) ? ` (${error.advice})` : '';
      failed.push({ ...thing, why: `${message}${advice}` });
    }
  }
  return { removed, failed };
}
