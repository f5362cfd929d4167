/** What this process runs from, and a sandbox must never write to. */

import { packageInfo } from './package-root.ts';

/** Sallyport's package and Node's executable. */
export const runningPrograms = (): readonly string[] => [packageInfo().root, process.execPath];
