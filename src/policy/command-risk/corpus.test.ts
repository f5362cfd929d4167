import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { evaluateCommand } from './evaluate.ts';

interface Line {
  readonly expected: string;
  readonly command: string;
}

const lines: readonly Line[] = readFileSync(new URL('./corpus.txt', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => {
    const [riskClass = '', route = '', ...rest] = line.split(' | ');
    return { expected: `${riskClass} | ${route}`, command: readEscapes(rest.join(' | ')) };
  });

function readEscapes(text: string): string {
  return text
    .replaceAll('\\\\', '\0')
    .replace(/\\u\{([0-9A-F]+)\}/gi, (_, code: string) => String.fromCodePoint(Number.parseInt(code, 16)))
    .replaceAll('\\n', '\n')
    .replaceAll('\0', '\\');
}

test('[C1] puts every command of the corpus into its class, and sends it where it belongs', () => {
  const wrong = lines.flatMap(({ expected, command }) => {
    const { class: riskClass, route, confirm, reasons } = evaluateCommand(command);
    const got = `${riskClass} | ${route}${confirm ? ' ?' : ''}`;
    return got === expected
      ? []
      : [
          `${JSON.stringify(command)}: ${got}, not ${expected} (${reasons.map((reason) => reason.text).join('; ')})`,
        ];
  });
  expect(wrong).toEqual([]);
  expect(lines.length).toBeGreaterThan(300);
});

/** Milliseconds of the processor. They grow less than the time by what else the machine does, but up to twofold. */
function processorMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

test('[C1] judges 10,000 commands in 2 s, and one of 1 KB in 2 ms', () => {
  const judgeAll = (count: number) => (): void => {
    for (let at = 0; at < count; at++) evaluateCommand(lines[at % lines.length]?.command ?? '');
  };
  // The first round is that of the compiler; of the others the one that was least disturbed counts.
  judgeAll(10_000)();
  const rounds = [judgeAll(10_000), judgeAll(10_000), judgeAll(10_000)];
  expect(Math.min(...rounds.map(processorMs))).toBeLessThan(2000);
  const long = `ls ${'some/folder/file.txt '.repeat(40)}| grep -v '${'x'.repeat(160)}' > out.txt`;
  expect(long.length).toBeGreaterThan(1000);
  const times = 500;
  const judgeLong = (): void => {
    for (let time = 0; time < times; time++) evaluateCommand(long);
  };
  expect(Math.min(...[judgeLong, judgeLong, judgeLong].map(processorMs))).toBeLessThan(2 * times);
});
