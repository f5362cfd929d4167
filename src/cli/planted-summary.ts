/** What appeared in a live workspace or a tool's folder that programs of this machine may execute, as loud lines with what to do. */

import type { WorkspaceScanView } from '../protocol/views.ts';
import { note } from './output.ts';
import type { SandboxCalls } from './sandbox-calls.ts';
import { printable } from './table.ts';

const mostShown = 10;

/** Never in the way of the command's own end. `since`: only what was found after that time. */
export async function printPlanted(
  calls: SandboxCalls,
  box: string,
  { since = '' }: { readonly since?: string } = {},
): Promise<void> {
  // Where nothing can be asked any more, nothing is known either.
  const scan = await calls.scan(box).catch((): WorkspaceScanView => ({ finished: false, planted: [] }));
  notePlanted(scan, since);
}

export function notePlanted(scan: WorkspaceScanView, since = ''): void {
  for (const line of plantedLines(scan, since)) note(line);
}

export function plantedLines(
  { finished, incomplete, planted }: WorkspaceScanView,
  since: string,
): readonly string[] {
  const news = planted.filter(({ found_at: foundAt }) => foundAt >= since);
  const things = news.length === 1 ? '1 thing' : `${news.length} things`;
  const where = news.every(({ tool }) => tool === undefined)
    ? 'in the workspace'
    : news.some(({ tool }) => tool === undefined)
      ? 'in the workspace and in folders of tools'
      : 'in folders of tools';
  return [
    ...(news.length === 0
      ? []
      : [
          `WARNING: ${things} appeared ${where} that programs of this machine may execute:`,
          ...news
            .slice(0, mostShown)
            .map(({ path, kind, how, advice }) => `  ${printable(path)} (${kind}, ${how}): ${advice}`),
          ...(news.length > mostShown
            ? [`  and ${news.length - mostShown} more; \`sally verify\` lists them`]
            : []),
        ]),
    ...(finished
      ? []
      : ['WARNING: workspace scan not finished; `sally verify` shows what was planted, if anything']),
    ...(incomplete === undefined ? [] : [`WARNING: workspace scan incomplete: ${incomplete}`]),
  ];
}
