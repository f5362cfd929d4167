/**
 * `npm start`: from a fresh clone to a real command in a real sandbox. Each step says what it does and how long it took;
 * a second run finds everything there. On a terminal it asks before anything is installed; without one, `npm start` is
 * itself the request to set up, and what is installed is said.
 */

import { join } from 'node:path';
import { colour as pc } from './colour.mjs';
import { ensureDependencies, must, root, run } from './steps.mjs';

const started = performance.now();
const sally = [join(root, 'dist/cli/sally.cjs')];
const consent = process.stdin.isTTY ? [] : ['--yes'];
const timings = [];

async function step(name, work) {
  const from = performance.now();
  console.error(pc.bold(`▸ ${name}`));
  await work();
  timings.push([name, performance.now() - from]);
}

const node = (...args) => must(process.execPath, args);

await step('dependencies', ensureDependencies);
await step('build (command line, porter)', () => node(join(root, 'scripts/build.mjs')));
await step('engine', () => node(...sally, 'setup', ...consent));
await step('base image', () => node(...sally, 'image', 'bootstrap', ...consent));
await step('a command in a sandbox', async () => {
  const script =
    "id; uname -a; python3 -c \"print('6 * 7 =', 6 * 7)\"; echo \"network: $(ls /sys/class/net | tr '\\n' ' ')\"";
  console.error(pc.dim(`$ sally run -- sh -c '${script}'`));
  const code = await run(process.execPath, [...sally, 'run', '--', 'sh', '-c', script], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (code !== 0) process.exit(code);
});

const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;
console.error('');
for (const [name, ms] of timings) console.error(`${seconds(ms).padStart(8)}  ${name}`);
console.error(`${seconds(performance.now() - started).padStart(8)}  ${pc.bold('in all')}`);
console.error(`
Try next:
  npx sally run -- python3 -c "print('hello from the box')"
  npx sally doctor
  npx sally --help`);
