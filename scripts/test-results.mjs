/** What `npm test` says at its end, out of the JSON report of vitest and the list of what was left out. Pure. */

import { relative } from 'node:path';

/** Tests and files that a run does not include, by the run that includes them. `lines` are `{ file, name, runsIn }`. */
export function leftOutLines(lines, root) {
  const byRun = new Map();
  for (const { file, name, runsIn } of lines) {
    const path = file.startsWith('/') ? relative(root, file) : file;
    byRun.set(runsIn, [...(byRun.get(runsIn) ?? []), `  ${path}: ${name}`]);
  }
  return [...byRun].flatMap(([runsIn, names]) => [`left out by selection, run by ${runsIn}:`, ...names, '']);
}

/** Whatever neither passed nor failed counts as skipped, also a `todo`, which vitest does not count. */
export function resultsOf({ testResults }, root) {
  const tests = testResults.flatMap(({ name, assertionResults }) =>
    assertionResults.map(({ fullName, status }) => ({
      title: `${relative(root, name)}: ${fullName}`,
      status,
    })),
  );
  const count = (wanted) => tests.filter(({ status }) => status === wanted).length;
  const skipped = tests.filter(({ status }) => status !== 'passed' && status !== 'failed');
  return { passed: count('passed'), failed: count('failed'), skipped: skipped.map(({ title }) => title) };
}
