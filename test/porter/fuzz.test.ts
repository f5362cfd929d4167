import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { packageInfo } from '../../src/lib/package-root.ts';
import { buildCage, canCage, runCaged } from '../fuzz/cage.ts';
import { fuzzHost } from '../fuzz/host.ts';
import { fuzzPorter } from '../fuzz/porter.ts';
import { temporaryFolder } from '../support/little-engine.ts';
import { commandExists, isRoot, requirement } from '../support/requires.ts';
import { asRoot, when } from '../support/selection.ts';

const { root } = packageInfo();
const seed = 20_261_115;
const hasCage = requirement('gcc, and namespaces', commandExists('gcc') && (canCage() || !isRoot));

interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function caged(program: string, args: readonly string[]): Promise<Outcome> {
  const { child, stop } = runCaged(buildCage(), program, { args });
  if (child.stdout === null || child.stderr === null) throw new Error('no pipes');
  const ended = once(child, 'exit');
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = (await ended) as [number | null];
  stop();
  return { code, stdout, stderr };
}

describe('a short seeded run of `npm run fuzz`', () => {
  it('finds nothing in the host half', async () => {
    await fuzzHost({ seed, cases: 3_000 });
  });

  when(asRoot, hasCage).it(
    'finds nothing in porter under ASan, UBSan and the leak detector',
    async () => {
      const folder = join(root, 'porter');
      expect(spawnSync('make', ['-s', '-C', folder, 'sanitize'], { stdio: 'inherit' }).status).toBe(0);
      await fuzzPorter(join(folder, 'build', 'porter-sanitize'), { seed, cases: 30, sideBySide: 8 });
    },
    120_000,
  );
});

when(asRoot, hasCage).describe('the cage of the fuzzer', () => {
  const guilty = (): string => {
    const out = join(temporaryFolder(), 'guilty');
    const flags = ['-g', '-fsanitize=address', '-fno-sanitize-recover=all', '-o', out];
    expect(spawnSync('gcc', [...flags, join(root, 'test/fuzz/guilty.c')], { stdio: 'inherit' }).status).toBe(
      0,
    );
    return out;
  };

  it('tells of a leak in a process that nobody may trace, and of a fault in one without stderr', async () => {
    const program = guilty();
    expect(await caged(program, ['nothing'])).toMatchObject({ code: 0, stderr: '' });
    expect(await caged(program, ['leak'])).toMatchObject({
      code: 99,
      stderr: expect.stringContaining('detected memory leaks'),
    });
    expect(await caged(program, ['overflow'])).toMatchObject({
      code: 99,
      stderr: expect.stringContaining('heap-buffer-overflow'),
    });
  });

  it('lets a program write to /play and to nothing else, reach loopback and nothing else, and end with it', async () => {
    const script = [
      'echo in > /play/file && cat /play/file',
      `for path in /usr/x /bin/x /x /etc ${root}; do (echo > $path/x) 2>/dev/null && echo $path; done`,
      'grep -E "^(CapEff|NoNewPrivs)" /proc/self/status; id -u; tail -n +3 /proc/net/dev | cut -d: -f1',
      // By the shell itself: of two programs in a pipe one may have ended, or not begun, when the other looks.
      'set -- /proc/[0-9]*; echo $#; sleep 1000 &',
    ].join('\n');
    const { code, stdout } = await caged('/bin/bash', ['-c', script]);
    expect(
      stdout
        .trim()
        .split('\n')
        .map((line) => line.replace(/\s+/g, ' ').trim()),
    ).toEqual(['in', 'CapEff: 0000000000000000', 'NoNewPrivs: 1', isRoot ? '64000' : '0', 'lo', '2']);
    // The sleeper has its stdout too: that was at its end only because the sleeper was.
    expect(code).toBe(0);
  });
});
