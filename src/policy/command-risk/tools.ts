/** Who judges which program. A program that is in no table is unknown. */

import type { Call, Judge } from './call.ts';
import { containers } from './tools/containers.ts';
import { databases } from './tools/databases.ts';
import { fileTools } from './tools/files.ts';
import { git } from './tools/git.ts';
import { network } from './tools/network.ts';
import { packages } from './tools/packages.ts';
import { programs } from './tools/programs.ts';
import { readers } from './tools/readers.ts';
import { system } from './tools/system.ts';
import { windows } from './tools/windows.ts';
import { wrappers } from './wrappers.ts';

const judges = new Map<string, Judge>(
  [
    readers,
    fileTools,
    git,
    network,
    packages,
    programs,
    containers,
    databases,
    system,
    windows,
    wrappers,
  ].flatMap((table) => Object.entries(table)),
);

const windowsJudges = new Map(Object.entries(windows));

/** Windows does not tell Del from del, and everybody writes Remove-Item as they like. */
export function judgeOf(program: string): Judge | undefined {
  const judge = judges.get(program) ?? windowsJudges.get(program.toLowerCase()) ?? family(program);
  return judge === undefined ? undefined : (call) => (asksOnly(call) ? undefined : judge(call));
}

/** python3.12, mkfs.ext4, gcc-13: the same program under a longer name. */
function family(program: string): Judge | undefined {
  const short =
    /^(python|perl|ruby|php|lua|node|gcc|g\+\+|clang|pip|java|mkfs|fsck)[0-9.-]*(\.[a-z0-9]+|-[0-9.]+)?$/.exec(
      program,
    );
  return short === null ? undefined : judges.get(short[1] ?? '');
}

/** Every program of the tables answers these two without doing anything else. */
function asksOnly({ args }: Call): boolean {
  return args.length === 1 && args[0]?.known === true && /^(--version|--help)$/.test(args[0].text);
}

/** Their words are text, not names of files. */
export const onlyPrints = (program: string): boolean =>
  /^(echo|printf|:|true|false|export|alias|read)$/.test(program);
