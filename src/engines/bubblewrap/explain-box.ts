/** What would be started for a box, shown and not done: the keeper's line, which becomes bubblewrap's, and what holds the box. */

import { join } from 'node:path';
import { shellLine } from '../../lib/shell-words.ts';
import type { BoxRequest } from '../../protocol/box.ts';
import type { BoxHome } from '../../sandboxes/ports.ts';
import { boxLine, countsProcesses } from './box-arguments.ts';
import { findCgroups } from './cgroups.ts';
import { lookAtSystem } from './system-places.ts';
import { weaknesses } from './weaknesses.ts';

export interface ExplainedBox {
  readonly request: {
    readonly keeper: readonly string[];
    readonly bubblewrap: readonly string[];
    /** What its control groups hold it to; null: there are none for this user. */
    readonly control_groups: { readonly memory: number; readonly cpus: number; readonly pids: number } | null;
    readonly weaker: readonly string[];
  };
  readonly commandLine: string;
}

/** What is chosen when it is made, shown as what it looks like. */
const anyId = 'bw-000000000000000000000000';

export async function explainBox(
  box: BoxRequest,
  home: BoxHome,
  {
    folder,
    isRoot,
    keeperPath,
    bubblewrapPath,
  }: {
    readonly folder: string;
    readonly isRoot: boolean;
    readonly keeperPath: string;
    readonly bubblewrapPath: string;
  },
): Promise<ExplainedBox> {
  const [system, cgroups] = await Promise.all([lookAtSystem(), findCgroups(isRoot)]);
  const { memoryBytes: memory, cpus, pids } = box.limits;
  const { keeper, bubblewrap } = boxLine(box, home, {
    id: anyId,
    folder: join(folder, anyId),
    isRoot,
    system,
    etc: join(folder, 'etc-0000000000000000'),
    cgroups: cgroups.groupsOf(anyId),
    countsProcesses: !cgroups.available && countsProcesses(),
  });
  return {
    request: {
      keeper,
      bubblewrap,
      control_groups: cgroups.available ? { memory, cpus, pids } : null,
      weaker: weaknesses({ isRoot, cgroups: cgroups.available, countsProcesses: countsProcesses() }),
    },
    commandLine: shellLine([keeperPath, ...keeper, '--', bubblewrapPath, ...bubblewrap]),
  };
}
