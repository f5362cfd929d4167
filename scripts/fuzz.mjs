/**
 * `npm run fuzz`: random and damaged streams against both halves of the porter protocol and the parsers of the gate. `--seed=`
 * and `--cases=` repeat a run; `--host`, `--porter` and `--gate` choose. The porter under test is built with ASan and UBSan, looks for leaks when it ends,
 * and runs in a cage (test/fuzz/cage.c), because file operations with damaged paths are nothing for the machine itself.
 */

import { join } from 'node:path';
import { ensureDependencies, must, root } from './steps.mjs';

await ensureDependencies();
await must('make', ['-s', '-C', join(root, 'porter'), 'sanitize']);
const { importTs } = await import('./run-ts.mjs');
const { main } = await importTs('test/fuzz/main.ts');
process.exitCode = await main(process.argv.slice(2));
