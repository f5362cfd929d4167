/**
 * `npm run test:full`: all tests with the big sizes, on each machine of full-run/machines.mjs, one after the other. Hours.
 *
 *   npm run test:full                     every machine
 *   npm run test:full -- debian-13 user   these machines
 *   npm run test:full -- here             this machine, as it is; nothing is recorded, other arguments go to `npm test`
 *
 * The result of each machine replaces its entry in docs/tested.json, and docs/tested.md is written again. A machine clones
 * HEAD, so a work tree with other changes is refused. An interrupted run is not recorded. Needs root on Debian.
 */

import { spawn, spawnSync } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { machines } from './full-run/machines.mjs';
import { entryOf, factsIn, readRecord, recordFiles, withEntry, writeRecord } from './full-run/record.mjs';
import { isRootOnDebian, root, run } from './steps.mjs';

const folder = join(root, '.cache', 'full-run');
const progressMs = 60_000;
const [first, ...others] = process.argv.slice(2);
let interrupted;

if (first === 'here') {
  process.exitCode = await run(process.execPath, [join(root, 'scripts/test.mjs'), '--full', ...others]);
} else {
  const chosen = chooseMachines(process.argv.slice(2));
  refuseChanges();
  if (!isRootOnDebian()) stopWith(1, 'bare machines need root on Debian', 'run this as root on Debian');
  mkdirSync(folder, { recursive: true });
  process.exitCode = 0;
  for (const [index, machine] of chosen.entries()) {
    if (interrupted === undefined) await runMachine(machine, `${index + 1} of ${chosen.length}`);
  }
  process.exitCode = interrupted ?? process.exitCode;
}

function chooseMachines(names) {
  const known = machines.map(({ name }) => name);
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    stopWith(2, `unknown machine ${unknown.join(', ')}`, `name some of ${known.join(', ')}, or \`here\``);
  }
  return names.length === 0 ? machines : machines.filter(({ name }) => names.includes(name));
}

/** The record names a commit: the scripts that make the machines must be those of that commit, too. */
function refuseChanges() {
  const { status, stdout } = spawnSync('git', ['status', '--porcelain'], { cwd: root, encoding: 'utf8' });
  if (status !== 0) stopWith(1, 'git status failed', 'run this in a clone of the repository');
  const changed = stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.slice(3))
    .filter((path) => !recordFiles.includes(path));
  if (changed.length === 0) return;
  stopWith(1, `the work tree differs from HEAD: ${changed.join(', ')}`, 'commit or stash the changes first');
}

async function runMachine(machine, place) {
  const { name } = machine;
  const log = join(folder, `${name}.log`);
  const results = join(folder, `${name}.json`);
  rmSync(results, { force: true });
  note(`${name} (${place}): begins; its output goes to ${relative(root, log)}`);
  const began = new Date();
  const minutes = () => (Date.now() - began.getTime()) / 60_000;
  const progress = setInterval(
    () => note(`${name} (${place}): ${minutes().toFixed(0)} minutes; ${lastLine(log)}`),
    progressMs,
  );
  const { code, signal } = await startMachine(machine, { log, results });
  clearInterval(progress);

  const facts = factsIn(readLog(log));
  if (interrupted !== undefined || signal !== null || facts === undefined) {
    note(
      `${name}: ${facts === undefined ? 'the machine did not start' : 'interrupted'}; nothing is recorded`,
    );
    if (interrupted === undefined)
      note(`last output:\n${readLog(log).trimEnd().split('\n').slice(-20).join('\n')}`);
    process.exitCode = 1;
    return;
  }
  const report = existsSync(results) ? JSON.parse(readFileSync(results, 'utf8')) : undefined;
  const entry = entryOf({ facts, report, code, date: began, minutes: minutes() });
  writeRecord(withEntry(readRecord(), name, entry));
  for (const failure of entry.failures) note(`${name}: FAIL ${failure}`);
  const { ok, passed, failed, skipped } = entry;
  const counts = `${passed} passed, ${failed} failed, ${skipped} skipped`;
  note(`${name} (${place}): ${ok ? 'ok' : 'FAILED'}; ${counts} in ${minutes().toFixed(1)} minutes`);
  if (!ok) process.exitCode = 1;
}

/** A signal to this process ends the machine, which removes itself. */
async function startMachine({ distribution, script }, { log, results }) {
  const program = join(root, 'scripts/fresh-machine.mjs');
  const output = openSync(log, 'w');
  const child = spawn(process.execPath, [program, distribution, '--results', results, '--script', script], {
    cwd: root,
    stdio: ['ignore', output, output],
    env: { ...process.env, SALLYPORT_MUST_WORK: '1' },
  });
  closeSync(output);
  const handlers = Object.entries({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }).map(([name, code]) => {
    const handler = () => {
      if (interrupted === undefined) note('interrupted: removing the machine');
      interrupted ??= code;
      child.kill(name);
    };
    process.on(name, handler);
    return () => process.off(name, handler);
  });
  try {
    return await new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code, signal) => resolve({ code, signal }));
    });
  } finally {
    for (const remove of handlers) remove();
  }
}

function readLog(log) {
  return stripVTControlCharacters(readFileSync(log, 'utf8'));
}

function lastLine(log) {
  const lines = readLog(log).split('\n');
  return (lines.findLast((line) => line.trim() !== '') ?? '').trim().slice(0, 100);
}

function stopWith(code, problem, advice) {
  note(problem);
  note(advice);
  process.exit(code);
}

function note(line) {
  console.error(`sally: ${line}`);
}
