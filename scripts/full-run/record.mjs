/** The record of full runs, docs/tested.json: one entry per machine. Pure, but for `readRecord` and `writeRecord`. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../steps.mjs';
import { machines } from './machines.mjs';
import { testedPage } from './tested-page.mjs';

/** Files that a full run itself changes. */
export const recordFiles = ['docs/tested.json', 'docs/tested.md'];

export function readRecord() {
  return JSON.parse(readFileSync(join(root, 'docs/tested.json'), 'utf8'));
}

export function writeRecord(record) {
  writeFileSync(join(root, 'docs/tested.json'), `${JSON.stringify(record, null, 2)}\n`);
  writeFileSync(join(root, 'docs/tested.md'), testedPage(machines, record));
}

/** The record with one machine's entry replaced. */
export function withEntry(record, machine, entry) {
  return { ...record, [machine]: entry };
}

/** The facts that fresh-machine/begin.sh prints into the log; undefined if the run never came so far. */
export function factsIn(log) {
  const fact = (name) => new RegExp(`^lane-${name} (.+)$`, 'm').exec(log)?.[1].trim();
  const facts = { commit: fact('commit'), kernel: fact('kernel'), node: fact('node') };
  if (Object.values(facts).includes(undefined)) return undefined;
  return { ...facts, engine: fact('engine') ?? 'none' };
}

/**
 * The entry of one machine. `report` is the JSON report of vitest, undefined if no test ran. `code` is the exit code of the
 * whole run, which also fails for things that no test names, such as a container that is left.
 */
export function entryOf({ facts, report, code, date, minutes }) {
  const files = report?.testResults ?? [];
  const tests = files.flatMap(({ assertionResults }) => assertionResults);
  const count = (...statuses) => tests.filter(({ status }) => statuses.includes(status)).length;
  const failures = files.flatMap(failuresOf);
  const passed = count('passed');
  return {
    ...facts,
    date: date.toISOString(),
    minutes: Math.round(minutes),
    ok: code === 0 && passed > 0 && failures.length === 0,
    passed,
    failed: failures.length,
    skipped: tests.length - passed - count('failed'),
    failures,
  };
}

/** Failed tests of a file, by name. A file whose set-up fails has no failed test, and counts as one. */
function failuresOf({ name, status, assertionResults }) {
  const file = name.replace(/^.*?\/sallyport\//, '');
  const failed = assertionResults.filter((test) => test.status === 'failed');
  if (failed.length > 0) return failed.map(({ fullName }) => `${file}: ${fullName.trim()}`);
  return status === 'failed' ? [`${file}: failed outside of its tests`] : [];
}
