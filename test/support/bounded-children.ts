/**
 * A program that is waited for synchronously holds up its whole process, and no limit of a test can end it: without a limit of its
 * own it could hold up the run for ever. Loaded before every test file.
 */

import childProcess from 'node:child_process';
import { syncBuiltinESMExports } from 'node:module';

/** Less than the limit of a test, so that the failure is that program's. */
const bound = { timeout: 150_000, killSignal: 'SIGKILL' } as const;

type SyncCall = (program: string, ...rest: readonly unknown[]) => unknown;

/** The unit tests share a process, in which this module is loaded again for each file. */
const isBounded = Symbol.for('sallyport.bounded');

for (const name of ['spawnSync', 'execFileSync', 'execSync'] as const) {
  const original = childProcess[name] as SyncCall;
  if (isBounded in original) continue;
  const bounded: SyncCall = (program, ...rest) => {
    const args = rest.filter(Array.isArray);
    const options = rest.find((one) => typeof one === 'object' && one !== null && !Array.isArray(one));
    return original(program, ...args, { ...bound, ...(options as object | undefined) });
  };
  Object.assign(childProcess, { [name]: Object.assign(bounded, { [isBounded]: true }) });
}
syncBuiltinESMExports();
