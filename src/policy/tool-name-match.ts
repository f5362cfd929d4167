/** Whether a path in the folder of a built-in tool is one that the host executes or obeys (`tool-names.ts`). Pure. */

import { foldedName, patternOf } from './protected-names.ts';
import { heldNames, toolState } from './tool-names.ts';

/** Asked with the folded parts of a path from the folder on. */
export function toolNameMatcher(mount: string): (parts: readonly string[]) => boolean {
  const sequences = heldNames(mount).map(({ name }) => name.split('/').map(patternOf));
  return (parts) =>
    sequences.some(
      (sequence) =>
        sequence.length === parts.length &&
        sequence.every((pattern, index) => pattern.test(parts[index] ?? '')),
    );
}

export const isToolState = (mount: string, name: string): boolean =>
  (toolState[mount] ?? []).includes(foldedName(name));

const scriptEnd = /\.(?:sh|bash|zsh|fish|pyw?|[mc]?[jt]sx?|rb|pl|php|lua|ps1|bat|cmd|exe|jar)$/i;

export const isScriptName = (name: string): boolean => scriptEnd.test(name);

/** A file that something may run: by its name, or by its mode. */
export const isProgram = (name: string, mode: number): boolean => isScriptName(name) || (mode & 0o111) !== 0;
