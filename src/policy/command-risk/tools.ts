/** Who judges which program. A program that is in no table is unknown. */

import type { Call, Judge } from './call.ts';
import { containers } from './tools/containers.ts';
import { databases } from './tools/databases.ts';
import { fileTools } from './tools/files.ts';
import { git } from './tools/git.ts';
import { network } from './tools/network.ts';
import { packages } from './tools/packages.ts';
import { programs, shells } from './tools/programs.ts';
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

const asksByLetter = /^(node|nodejs|java|php|perl|ruby|npm|rustc|python[\d.]*|pip[\d.]*)$/;

/** Every program of the tables answers these two without doing anything else. */
export function asksOnly({ program, args }: Call): boolean {
  // Its configuration may name another program to be run in its place.
  if (/^(yarn|bundle|dotnet|gulp|grunt|ng|nx)$/.test(program)) return false;
  const [only] = args;
  if (args.length !== 1 || only?.known !== true) return false;
  return (
    /^(--version|--help)$/.test(only.text) ||
    (asksByLetter.test(program) && /^(-v|-V|-version)$/.test(only.text))
  );
}

/** Read all that is below a folder. */
export const readsDeep = (program: string): boolean =>
  /^([ef]?grep|rg|ag|tar|gtar|bsdtar|zip|7z|cp|mv|rsync|diff|git|find|ln|scp|cpio)$/.test(program);

/** Judged by what they run; their own options are judged there. */
export const runsOthers = (program: string): boolean =>
  Object.hasOwn(wrappers, program) || Object.hasOwn(shells, program) || program === 'eval';
