import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { temporaryFolder } from '../../test/support/little-engine.ts';
import { openLogFile } from './log-file.ts';
import { RotatingFile } from './rotating-file.ts';

describe('a file that rotates', () => {
  it('keeps so many files of so many bytes, the newest lines in order', () => {
    const folder = temporaryFolder();
    const open = (): RotatingFile => new RotatingFile(join(folder, 'log'), { maxBytes: 100, keep: 3 });
    let file = open();
    for (let number = 0; number < 60; number++) {
      file.append(`line ${String(number).padStart(4, '0')}`);
      // Another process goes on where this one was.
      if (number % 7 === 0) {
        file.close();
        file = open();
      }
    }
    file.close();
    expect(readdirSync(folder).sort()).toEqual(['log', 'log.1', 'log.2']);
    const lines = ['log.2', 'log.1', 'log'].flatMap((name) => {
      const content = readFileSync(join(folder, name), 'utf8');
      expect(content.length).toBeLessThanOrEqual(100);
      return content.trimEnd().split('\n');
    });
    expect(lines.at(-1)).toBe('line 0059');
    expect(lines.map((line) => Number(line.slice(5)))).toEqual(
      lines.map((_, place) => 60 - lines.length + place),
    );
    expect(lines.length).toBeGreaterThan(20);
  });

  it('takes a line that is longer than a file may be', () => {
    const folder = temporaryFolder();
    const file = new RotatingFile(join(folder, 'log'), { maxBytes: 10, keep: 2 });
    onTestFinished(() => file.close());
    file.append('x'.repeat(50));
    file.append('y');
    expect(readFileSync(join(folder, 'log'), 'utf8')).toBe('y\n');
  });
});

describe("the daemon's log", () => {
  it('has level, time, message and fields in each line, and errors with their stack', () => {
    const path = join(temporaryFolder(), 'daemon.log');
    const log = openLogFile(path);
    onTestFinished(() => log.close());
    log.write('warn', 'something\nhappened', { sandbox: 'sb-1', error: new Error('why') });
    const [line = '', ...rest] = readFileSync(path, 'utf8').split('\n');
    expect(rest).toEqual(['']);
    expect(JSON.parse(line)).toEqual({
      level: 'warn',
      time: expect.stringMatching(/^\d{4}-.*Z$/),
      message: 'something\nhappened',
      sandbox: 'sb-1',
      error: expect.stringContaining('Error: why'),
    });
  });

  it('never throws, and says later how many lines it could not write', () => {
    const folder = join(temporaryFolder(), 'state');
    const path = join(folder, 'daemon.log');
    const log = openLogFile(path, { maxBytes: 1, keep: 1 });
    onTestFinished(() => log.close());
    log.write('info', 'one');
    // Where the file was there is a folder now: neither rotating nor writing works.
    rmSync(path);
    mkdirSync(join(path, 'in the way'), { recursive: true });
    log.write('info', 'two');
    log.write('info', 'three');
    rmSync(path, { recursive: true });
    log.write('info', 'four');
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ message: 'four', lines_lost_before: 2 });
  });

  it('survives fields that are no JSON', () => {
    const path = join(temporaryFolder(), 'daemon.log');
    const log = openLogFile(path);
    onTestFinished(() => log.close());
    const circle: Record<string, unknown> = {};
    circle['self'] = circle;
    log.write('info', 'one', { circle });
    log.write('info', 'two', { big: 1n });
    log.write('info', 'three');
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ message: 'three', lines_lost_before: 2 });
  });
});
