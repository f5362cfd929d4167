/** `npm run mission`: each requirement of the mission with the tests that carry its id, and how they ended last time. */

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './steps.mjs';

const ids = [...range('G', 12), ...range('A', 16), ...range('O', 8), ...range('R', 11), ...range('C', 7)];

function range(letter, count) {
  return Array.from({ length: count }, (_, index) => `${letter}${index + 1}`);
}

const report = join(root, '.cache', 'test-results.json');
if (!existsSync(report)) {
  console.error('sally: no test results yet\nsally: run `npm test` first');
  process.exit(1);
}
const tests = JSON.parse(readFileSync(report, 'utf8')).testResults.flatMap((file) => file.assertionResults);
const untested = [];
for (const id of ids) {
  const own = tests.filter((test) => new RegExp(`\\[[^\\]]*\\b${id}\\b[^\\]]*\\]`).test(test.fullName));
  if (own.length === 0) {
    untested.push(id);
    continue;
  }
  console.log(id);
  for (const test of own)
    console.log(`  ${test.status === 'passed' ? 'ok  ' : 'FAIL'} ${test.fullName.trim()}`);
}
console.log(`\nwithout a test: ${untested.join(' ') || 'none'}`);
const failing = tests.filter((test) => test.status === 'failed').length;
process.exitCode = failing === 0 ? 0 : 1;
