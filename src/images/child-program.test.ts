import { describe, expect, it } from 'vitest';
import { saysDiskFull, startProgram } from './child-program.ts';

const stop = { signal: 'SIGTERM', to: 'group' } as const;

describe('a program that runs as a child', () => {
  it('gives its lines, its last words and its exit code', async () => {
    const lines: string[] = [];
    const program = startProgram('sh', ['-c', 'echo out; echo "$WORD" >&2; exit 3'], {
      onLine: (line) => lines.push(line),
      environment: { WORD: 'err' },
      stop,
    });
    const { exitCode, lastLines } = await program.ended;
    expect(exitCode).toBe(3);
    expect(lines.sort()).toEqual(['err', 'out']);
    expect([...lastLines].sort()).toEqual(['err', 'out']);
  });

  it('is gone with its whole group when the signal fires, even if it ignores being asked', async () => {
    const abort = new AbortController();
    const program = startProgram(
      'sh',
      ['-c', 'trap "" TERM; echo ready; while :; do read x </dev/zero; done'],
      {
        onLine: () => abort.abort(),
        signal: abort.signal,
        graceMs: 200,
        stop,
      },
    );
    expect((await program.ended).exitCode).toBeNull();
  });

  it('says that it is not there by exit code 127', async () => {
    const program = startProgram('no-such-program-here', [], { onLine: () => {}, stop });
    expect((await program.ended).exitCode).toBe(127);
  });
});

describe('a full disk', () => {
  it('is recognised in the words of the kernel and of apt', () => {
    expect(saysDiskFull(['tar: write error: No space left on device'])).toBe(true);
    expect(saysDiskFull(["E: You don't have enough free space in /var/cache/apt/archives/."])).toBe(true);
    expect(saysDiskFull(['E: Unable to locate package'])).toBe(false);
  });
});
