/** What the processes of a box use, summed up from what the kernel shows of each. */

import { readdir, readFile } from 'node:fs/promises';
import type { BoxStats } from '../../sandboxes/ports.ts';

interface ProcessFigures {
  readonly parent: number;
  /** Of its own, and of those of its children that are gone. */
  readonly cpuTicks: number;
  readonly residentPages: number;
}

const ticksPerSecond = 100;
const pageBytes = 4096;

/** The name of a program may contain anything, blanks and brackets too; what follows its last bracket is numbers. */
export function parseStat(text: string): ProcessFigures | undefined {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const number = (index: number): number => Number(fields[index]);
  // Numbered from `state` on: 1 parent, 11 to 14 times, 21 resident pages.
  const cpuTicks = number(11) + number(12) + number(13) + number(14);
  const figures = { parent: number(1), cpuTicks, residentPages: number(21) };
  return Object.values(figures).some(Number.isNaN) ? undefined : figures;
}

export async function boxStats(firstPid: number, memoryLimitBytes: number): Promise<BoxStats> {
  const all = await allProcesses();
  const mine = descendants(firstPid, all);
  const sum = (read: (figures: ProcessFigures) => number): number =>
    mine.reduce(
      (total, pid) => total + read(all.get(pid) ?? { parent: 0, cpuTicks: 0, residentPages: 0 }),
      0,
    );
  return {
    memoryBytes: sum(({ residentPages }) => residentPages) * pageBytes,
    memoryLimitBytes,
    cpuSeconds: sum(({ cpuTicks }) => cpuTicks) / ticksPerSecond,
    pids: mine.length,
  };
}

async function allProcesses(): Promise<ReadonlyMap<number, ProcessFigures>> {
  const names = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    names.map(async (name) => {
      const text = await readFile(`/proc/${name}/stat`, 'latin1').catch(() => '');
      return [Number(name), parseStat(text)] as const;
    }),
  );
  return new Map(found.flatMap(([pid, figures]) => (figures === undefined ? [] : [[pid, figures] as const])));
}

function descendants(root: number, all: ReadonlyMap<number, ProcessFigures>): readonly number[] {
  const children = new Map<number, number[]>();
  for (const [pid, { parent }] of all) children.set(parent, [...(children.get(parent) ?? []), pid]);
  const found: number[] = all.has(root) ? [root] : [];
  for (let at = 0; at < found.length; at++) found.push(...(children.get(found[at] ?? -1) ?? []));
  return found;
}
