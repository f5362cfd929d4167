import { randomBytes } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import { diffChanges } from './diff-changes.ts';
import type { ChangeCalls, WorkspaceChange, WorkspaceChanges } from './workspace-changes.ts';

const MiB = 2 ** 20;

/** A workspace in which each of these files is new. */
function added(files: Readonly<Record<string, Buffer>>): {
  readonly calls: ChangeCalls;
  readonly changes: WorkspaceChanges;
  readonly fetched: readonly string[];
} {
  const fetched: string[] = [];
  const calls: Pick<ChangeCalls, 'inside'> = {
    inside: async function* (_target, { path }) {
      fetched.push(path);
      yield files[path] ?? Buffer.alloc(0);
    },
  };
  const changes = Object.entries(files).map(
    ([path, { length }]): WorkspaceChange => ({
      path,
      pathBytes: Buffer.from(path),
      change: 'added',
      after: { kind: 'file', mode: 0o644, size: length },
    }),
  );
  return {
    calls: calls as ChangeCalls,
    changes: { source: '/source', target: '/workspace', changes },
    fetched,
  };
}

describe('[N5] patches of files whose size was chosen inside', () => {
  it('say of a large one that it differs, without a look at it, and are whole for the others', async () => {
    const { calls, changes, fetched } = added({
      large: Buffer.alloc(8 * MiB + 1, '\n'),
      long: Buffer.alloc(8 * MiB, '\n'),
      wide: Buffer.alloc(8 * MiB, 'x'),
      small: Buffer.from('x\n'),
    });
    const whole: Record<string, boolean> = {};
    for await (const { change, isWhole } of diffChanges(calls, changes)) whole[change.path] = isWhole;
    expect(whole).toEqual({ large: false, long: false, wide: true, small: true });
    expect(fetched).toEqual(['long', 'wide', 'small']);
  });

  it('end at a signal that comes between two of them', async () => {
    const random = randomBytes(MiB);
    const { calls, changes } = added(
      Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`f${index}`, random])),
    );
    const abort = new AbortController();
    const interrupt = (): void => abort.abort(new Error('interrupted'));
    process.on('SIGUSR2', interrupt);
    onTestFinished(() => void process.off('SIGUSR2', interrupt));
    const shown: string[] = [];
    const diff = async (): Promise<void> => {
      for await (const { change } of diffChanges(calls, changes, { signal: abort.signal })) {
        shown.push(change.path);
        process.kill(process.pid, 'SIGUSR2');
      }
    };
    await expect(diff()).rejects.toThrow('interrupted');
    expect(shown).toEqual(['f0']);
  });
});
