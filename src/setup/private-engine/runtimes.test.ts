import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { findInPath, removeRuntimes, runtimesConfig, writeRuntimes } from './runtimes.ts';

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'sallyport-runtimes-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

function withRunsc(): { readonly PATH: string; readonly runsc: string } {
  const PATH = folder();
  const runsc = join(PATH, 'runsc');
  writeFileSync(runsc, '#!/bin/sh\n', { mode: 0o755 });
  return { PATH, runsc };
}

describe('the configuration of the private engine', () => {
  it('[R11] names gVisor where it is installed', async () => {
    const file = join(folder(), 'daemon.json');
    const { PATH, runsc } = withRunsc();
    await writeRuntimes(file, { PATH });
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({
      runtimes: {
        runsc: { path: runsc, runtimeArgs: ['--platform=systrap', '--network=none', '--overlay2=none'] },
      },
    });
  });

  it('replaces what an earlier version wrote', async () => {
    const file = join(folder(), 'daemon.json');
    const { PATH, runsc } = withRunsc();
    writeFileSync(file, runtimesConfig(runsc, ['--platform=systrap', '--network=none']));
    expect(await writeRuntimes(file, { PATH })).toBe(true);
    expect(readFileSync(file, 'utf8')).toBe(runtimesConfig(runsc));
  });

  it('follows gVisor as it comes and goes', async () => {
    const file = join(folder(), 'daemon.json');
    const { PATH, runsc } = withRunsc();
    await writeRuntimes(file, { PATH: folder() });
    expect(readFileSync(file, 'utf8')).toBe('{}\n');
    await writeRuntimes(file, { PATH });
    expect(readFileSync(file, 'utf8')).toBe(runtimesConfig(runsc));
    await writeRuntimes(file, { PATH: folder() });
    expect(readFileSync(file, 'utf8')).toBe('{}\n');
  });

  it.each(['', '{"debug": true}\n', '{"runtimes": {"runsc": {"path": "/opt/runsc"}}}\n'])(
    'stays as it is once somebody edited it to %j',
    async (edited) => {
      const file = join(folder(), 'daemon.json');
      writeFileSync(file, edited);
      await writeRuntimes(file, withRunsc());
      await removeRuntimes(file);
      expect(readFileSync(file, 'utf8')).toBe(edited);
    },
  );
});

describe('findInPath', () => {
  it('takes the first that may be executed, and nothing from a relative folder', () => {
    const first = withRunsc();
    const second = withRunsc();
    expect(findInPath('runsc', ['.', 'bin', first.PATH, second.PATH].join(delimiter))).toBe(first.runsc);
    expect(findInPath('no-such-runtime', first.PATH)).toBeUndefined();
    expect(findInPath('runsc', undefined)).toBeUndefined();
  });
});
