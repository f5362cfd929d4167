/** What was brought back from a private clone, in words and as JSON. Names come from inside, so none is printed as it is. */

import type { BroughtCommits } from '../sdk/bring-commits.ts';
import { note } from './output.ts';
import { printable } from './table.ts';

const shownPaths = 5;

/** The references go where the caller says; everything else is a note. */
export function sayBrought(
  box: string,
  { references, leftOut, commits, uncommitted, repository }: BroughtCommits,
  show: (line: string) => void,
): void {
  for (const { ref, commit } of references) show(`${commit.slice(0, 10)}\t${printable(ref)}`);
  for (const { branch, why } of leftOut) note(`left out ${printable(branch)}: ${why}`);
  const plural = commits === 1 ? '' : 's';
  note(
    commits === 0
      ? `nothing is committed in ${box} that is not in ${printable(repository)}`
      : `${commits} commit${plural} of ${box} brought to ${printable(repository)}; nothing was checked out`,
  );
  if (uncommitted.length === 0) return;
  const names = uncommitted.slice(0, shownPaths).map(({ path }) => printable(path));
  const more = uncommitted.length > shownPaths ? ', …' : '';
  note(`${uncommitted.length} changes are not committed (${names.join(', ')}${more}) → sally diff ${box}`);
}

export function broughtJson({ references, leftOut, commits, uncommitted, repository }: BroughtCommits) {
  return {
    repository,
    commits,
    references: references.map(({ branch, ref, commit }) => ({ branch, ref, commit })),
    left_out: leftOut.map(({ branch, why }) => ({ branch, why })),
    uncommitted: uncommitted.map(({ path, change }) => ({ path, change })),
  };
}
