/** `npm run bench -- <name>`: runs bench/<name>.ts; see bench/README.md. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ensureDependencies, must, root } from './steps.mjs';

const [name = 'exec', ...rest] = process.argv.slice(2);
const entry = `bench/${name}.ts`;
if (!/^[a-z-]+$/.test(name) || !existsSync(join(root, entry))) {
  console.error(`sally: there is no benchmark ${name}\nsally: try \`npm run bench -- exec\``);
  process.exit(2);
}
await ensureDependencies();
await must(process.execPath, [join(root, 'scripts/build.mjs')]);
const { importTs } = await import('./run-ts.mjs');
const { main } = await importTs(entry);
process.exitCode = await main(rest);
