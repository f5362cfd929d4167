/** The judge with the user's own lists: what `sally eval`, the guard and the API ask, so that they cannot differ. */

import type { ConfigEnvironment } from '../config/config.ts';
import { readUserFile } from '../config/user-file.ts';
import { evaluateCommand } from '../policy/command-risk/evaluate.ts';
import { defaultLists, type ReadLists, readLists } from '../policy/command-risk/lists.ts';
import type { Evaluation } from '../policy/command-risk/risk.ts';
import type { RiskClass } from '../protocol/risk-classes.ts';

export interface GuardRules {
  readonly lists: ReadLists;
  /** Classes that are asked about besides what destroys. */
  readonly confirm: ReadonlySet<RiskClass>;
}

/** Read each time: a list that was changed counts at once, and a file that cannot be understood judges nothing. */
export async function readGuardRules(
  environment: Pick<ConfigEnvironment, 'userFile' | 'home'>,
): Promise<GuardRules> {
  const guard = (await readUserFile(environment.userFile, environment.home))?.guard;
  return {
    lists: readLists({
      forbidden: guard?.forbidden ?? defaultLists.forbidden,
      restrictedPaths: guard?.restricted_paths ?? defaultLists.restrictedPaths,
      blocked: guard?.blocked ?? defaultLists.blocked,
      safeTools: guard?.safe_tools ?? defaultLists.safeTools,
    }),
    confirm: new Set(guard?.confirm ?? []),
  };
}

export function judge(text: string, { lists, confirm }: GuardRules, cwd: string | undefined): Evaluation {
  const evaluation = evaluateCommand(text, { lists, ...(cwd === undefined ? {} : { cwd }) });
  const asks = confirm.has(evaluation.class) && evaluation.route !== 'deny';
  return asks ? { ...evaluation, confirm: true } : evaluation;
}
