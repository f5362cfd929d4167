/** Writes the pages that come from the code and from the record of full runs, and the counts of `docs/bypasses.md`; `--check` fails if one is not up to date. */

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { countsFile, withCounts } from './bypass-rows.mjs';
import { machines } from './full-run/machines.mjs';
import { readRecord } from './full-run/record.mjs';
import { testedPage } from './full-run/tested-page.mjs';
import { readDocuments } from './requirements/documents.mjs';
import { requirementsPage } from './requirements/page.mjs';
import { importTs } from './run-ts.mjs';
import { root } from './steps.mjs';

const check = process.argv.includes('--check');
const { pages } = await importTs('scripts/generated/pages.ts');
let stale = 0;
const documents = readdirSync(join(root, 'docs'))
  .filter((name) => name.endsWith('.md'))
  .map((name) => ({ file: `docs/${name}`, text: readFileSync(join(root, 'docs', name), 'utf8') }));
const all = {
  ...pages(),
  'docs/requirements.md': requirementsPage(readDocuments()),
  'docs/tested.md': testedPage(machines, readRecord()),
  [countsFile]: withCounts(documents),
};
for (const [path, text] of Object.entries(all)) {
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
