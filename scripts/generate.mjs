/** Writes the reference pages that come from the code; `--check` fails if one of them is not up to date. */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { importTs } from './run-ts.mjs';
import { root } from './steps.mjs';

const check = process.argv.includes('--check');
const { pages } = await importTs('scripts/generated/pages.ts');
let stale = 0;
for (const [path, text] of Object.entries(pages())) {
  const file = join(root, path);
  let current = '';
  try {
    current = readFileSync(file, 'utf8');
  } catch {
    // Not there yet: stale.
  }
  if (current === text) continue;
  if (check) console.error(`${path} is not up to date: node scripts/generate.mjs`);
  else {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  stale++;
}
if (check && stale > 0) process.exitCode = 1;
