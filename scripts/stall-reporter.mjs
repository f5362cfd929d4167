/**
 * Against a run that hangs. vitest's limits end a test that waits; they cannot end one that blocks its process (a program that
 * is waited for and never ends), and then nothing is said at all. This says which tests run, if none has ended for a while, and
 * ends the run if none does for much longer: a failure that names its place, not one that has to be guessed.
 */

import { spawnSync } from 'node:child_process';

const minute = 60_000;
/** Longer than any limit of a test or hook of a full run, so that vitest's own message comes first. */
const given = process.env.SALLYPORT_FULL === '1' ? 120 * minute : 12 * minute;
const toldEvery = 3 * minute;

export default class StallReporter {
  #vitest;
  #timer;
  #running = new Map();
  #lastEnd = Date.now();
  #told = 0;

  onInit(vitest) {
    this.#vitest = vitest;
  }

  onTestRunStart() {
    this.#lastEnd = Date.now();
    this.#timer = setInterval(() => this.#look(), minute / 2);
    this.#timer.unref();
  }

  onTestRunEnd() {
    clearInterval(this.#timer);
  }

  onTestModuleQueued(module) {
    this.#running.set(module.moduleId, {
      what: module.relativeModuleId ?? module.moduleId,
      since: Date.now(),
    });
  }

  onTestModuleEnd(module) {
    this.#ended(module.moduleId);
  }

  onTestCaseReady(test) {
    this.#running.set(test.id, {
      what: `${test.module.relativeModuleId}: ${test.fullName}`,
      since: Date.now(),
    });
  }

  onTestCaseResult(test) {
    this.#ended(test.id);
  }

  #ended(id) {
    this.#running.delete(id);
    this.#lastEnd = Date.now();
    this.#told = 0;
  }

  #look() {
    const stalled = Date.now() - this.#lastEnd;
    if (stalled < toldEvery * (this.#told + 1)) return;
    this.#told += 1;
    const list = [...this.#running.values()].map(
      ({ what, since }) => `  ${what} (${Math.round((Date.now() - since) / 1000)} s)`,
    );
    process.stderr.write(
      `\nno test has ended for ${Math.round(stalled / 1000)} s. Running:\n${list.join('\n')}\n`,
    );
    if (stalled < given) return;
    clearInterval(this.#timer);
    process.stderr.write(`${spawnSync('ps', ['-eo', 'pid,ppid,stat,etimes,args', '--forest']).stdout}\n`);
    process.stderr.write('the run hangs, and is ended\n');
    process.exitCode = 1;
    void this.#vitest.exit(true);
  }
}
