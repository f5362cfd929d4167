/** A workspace of very many small files, by the built command line: in, compared, brought back, and away, in memory that has a bound. */

import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { makeBox, newFolder, sally } from '../support/cli.ts';
import { tellFigures } from '../support/figures.ts';
import { full } from '../support/requires.ts';
import { stateFolder } from '../support/state-folder.ts';

const count = full ? 200_000 : 5000;
const changed = 300;

/** The most that the daemon had resident so far. */
async function daemonPeakMb(): Promise<number> {
  const { pid } = JSON.parse(await readFile(join(stateFolder(), 'daemon.lock'), 'utf8')) as { pid: number };
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+)/m.exec(status)?.[1]) / 1024;
}

it('[O8][A5] compares a workspace of very many small files and brings back what changed', async () => {
  const folder = await newFolder();
  const make = `cd "$1" && seq 0 99 | xargs -I{} mkdir d{} && seq 1 "$2" | split -l 1 -a 4 - f &&
    find . -maxdepth 1 -name 'f*' | awk '{ print $0 > ("d" (NR % 100) "/.names") }' &&
    for d in d*; do xargs -n 2000 mv -t "$d" < "$d/.names"; rm "$d/.names"; done`;
  execFileSync('sh', ['-ec', make, 'sh', folder, String(count)]);
  const seconds: Record<string, number> = {};
  const timed = async <T>(what: string, act: Promise<T>): Promise<T> => {
    const from = performance.now();
    const result = await act;
    seconds[what] = (performance.now() - from) / 1000;
    return result;
  };
  const name = await timed('in', makeBox(['--workspace', folder, '--workspace-mode', 'copy']));
  const script = `find . -type f | LC_ALL=C sort | head -n ${changed} | while read f; do echo more >> "$f"; done; find . -type f | wc -l`;
  expect(await sally(['exec', name, 'sh', '-ec', script])).toMatchObject({ code: 0, stdout: `${count}\n` });
  const shown = await timed('diff', sally(['diff', name, '--name-only']));
  expect(shown.stdout.split('\n').filter((line) => line.startsWith('M\t'))).toHaveLength(changed);
  const applied = await timed('apply', sally(['apply', name]));
  expect(applied).toMatchObject({ code: 0, stdout: shown.stdout });
  const again = `cd "$1" && find . -type f | LC_ALL=C sort | head -n "$2" | xargs tail -qn 1 | sort -u`;
  expect(execFileSync('sh', ['-ec', again, 'sh', folder, String(changed)], { encoding: 'utf8' })).toBe(
    'more\n',
  );
  expect(await sally(['diff', name])).toMatchObject({ code: 0, stdout: '' });
  expect(await timed('rm', sally(['rm', name]))).toMatchObject({ code: 0 });
  const peakMb = await daemonPeakMb();
  tellFigures(`a workspace of ${count} small files`, { ...seconds, 'daemon MB': peakMb });
  // Without any such tree it has about a hundred; what is kept of each path is its mark.
  expect(peakMb).toBeLessThan(250 + (count / 1000) * 2);
}, 1_800_000);
