/** A build's output as steps: which one, how long it took, whether the builder had it already. The whole output is for the log. */

import type { Progress } from '../../lib/progress.ts';

const keptLines = 12;
/** What the builder says about its containers and layers, which is nobody's progress. */
const noise = /^\s*(--->|Removing intermediate container|Successfully (built|tagged))/;
const mostShown = 120;

export class BuildProgress {
  /** The last of what the steps themselves said. */
  readonly lastLines: string[] = [];
  readonly #tell: Progress;
  readonly #log: (text: string) => void;
  #step: { readonly words: string; readonly beganMs: number; cached: boolean } | undefined;
  readonly #total: number;
  #number = 0;

  /** `total`: how many steps the Dockerfile has. The builder adds some for our labels, which are nobody's affair. */
  constructor(total: number, tell: Progress, log: (text: string) => void) {
    this.#total = total;
    this.#tell = tell;
    this.#log = log;
  }

  /** Of the step that is under way, from 1; 0 before the first. */
  get step(): number {
    return this.#number;
  }

  readonly read: Progress = ({ message }) => {
    for (const line of message.split(/\r?\n/)) {
      this.#log(`${line}\n`);
      const [, number, words = ''] = /^Step (\d+)\/\d+ : (.*)$/.exec(line) ?? [];
      if (number !== undefined) this.#begin(Number(number), words);
      else if (line.trim() === '---> Using cache') this.#cached();
      else if (!noise.test(line) && line.trim() !== '') {
        this.lastLines.push(line.trim());
        if (this.lastLines.length > keptLines) this.lastLines.shift();
      }
    }
  };

  end(): void {
    if (this.#step === undefined) return;
    const { words, beganMs, cached } = this.#step;
    const how = cached ? 'cached' : `${((performance.now() - beganMs) / 1000).toFixed(1)} s`;
    this.#tell({ step: 'build', message: `${words} (${how})` });
    this.#step = undefined;
  }

  #begin(number: number, words: string): void {
    this.end();
    this.#number = number;
    this.lastLines.length = 0;
    if (number > this.#total) return;
    const whole = `${number}/${this.#total} ${words}`;
    const shown = whole.length > mostShown ? `${whole.slice(0, mostShown - 1)}…` : whole;
    this.#step = { words: shown, beganMs: performance.now(), cached: false };
    this.#tell({ step: 'build', message: shown });
  }

  #cached(): void {
    if (this.#step !== undefined) this.#step.cached = true;
  }
}
