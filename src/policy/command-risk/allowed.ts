/**
 * Which call of which program is known as harmless. SECURITY: the default is no. A program that is in no table here does not
 * run on the host, and neither does one with an option or an operand that its table does not have.
 */

import { machineOptions } from './allowed/machine.ts';
import { programAllowed } from './allowed/programs.ts';
import { readerOptions } from './allowed/readers.ts';
import { shellAllowed } from './allowed/shell.ts';
import { type Allowed, byOptions } from './allowed/verdict.ts';
import { writerOptions } from './allowed/writers.ts';

const byNotation = { ...readerOptions, ...machineOptions, ...writerOptions };

const table = new Map<string, Allowed>([
  ...Object.entries(byNotation).map(([name, notation]) => [name, byOptions(notation)] as const),
  ...Object.entries(programAllowed(byNotation)),
  ...Object.entries(shellAllowed),
]);

/** python3.12, gcc-13, pip3: the same program under a longer name. */
const versioned = /^(gcc|g\+\+|clang|pip)[0-9.-]*$/;

export function allowedOf(program: string): Allowed | undefined {
  return table.get(program) ?? table.get(versioned.exec(program)?.[1] ?? '');
}
