/** `npm run check`: everything about the tree that a machine can judge without running the product. */

import { colour } from './colour.mjs';
import { ensureDependencies, run } from './steps.mjs';

await ensureDependencies();

const checks = [
  ['format and lint', 'npx', ['--no-install', 'biome', 'ci', '--error-on-warnings', '--log-level=warn', '.']],
  ['types', 'npx', ['--no-install', 'tsc']],
  ['dependency rule', 'npx', ['--no-install', 'depcruise', '--config', '.dependency-cruiser.cjs', 'src']],
  ['bans', process.execPath, ['scripts/bans.mjs']],
  ['docs', process.execPath, ['scripts/docs-check.mjs']],
  ['unused code', 'npx', ['--no-install', 'knip']],
  ['generated files', process.execPath, ['scripts/generate.mjs', '--check']],
];

let failed = 0;
for (const [name, command, args] of checks) {
  const from = performance.now();
  const code = await run(command, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  const mark = code === 0 ? colour.green('ok  ') : colour.red('FAIL');
  console.error(`${mark} ${name} (${((performance.now() - from) / 1000).toFixed(1)} s)`);
  if (code !== 0) failed++;
}
process.exitCode = failed === 0 ? 0 : 1;
