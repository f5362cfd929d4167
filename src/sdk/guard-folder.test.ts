import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../test/support/little-engine.ts';
import { SallyportError } from '../protocol/errors.ts';
import { type AddedSpec, inFolder } from './guard.ts';

/** What a sandbox would be made of, where the engine answers the way a test says. */
async function made(
  spec: Parameters<typeof inFolder>[0],
  answer: (more: AddedSpec) => void,
  { mode = 0o755, writableCopy = false } = {},
) {
  const cwd = join(temporaryFolder(), 'project');
  mkdirSync(cwd);
  chmodSync(cwd, mode);
  const tried: AddedSpec[] = [];
  const result = await inFolder(spec, { cwd, writableCopy, stateDir: temporaryFolder() }, async (more) => {
    tried.push(more);
    answer(more);
    return more;
  });
  await result.dispose();
  return { cwd, tried, note: result.note, more: result.made };
}

const notChosen = ({ engine }: AddedSpec): void => {
  if (engine === 'bubblewrap') return;
  throw new SallyportError('engine_not_chosen', 'no container engine answers', {
    details: { engine: 'bubblewrap', weaker: ['the kernel is shared', 'no seccomp of an engine'] },
  });
};

describe('[C2] the sandbox of a guarded command', () => {
  test('has the folder read-only at /workspace and at its own path, and the strict profile', async () => {
    const { cwd, more, note } = await made({}, () => {});
    expect(more).toEqual({
      profile: 'strict',
      workdir: '/workspace',
      mounts: [
        { source: cwd, target: '/workspace' },
        { source: cwd, target: cwd },
      ],
    });
    expect(note).toBeUndefined();
  });

  test('has it at /workspace alone where its own path is taken inside', async () => {
    const { cwd, more, note } = await made({}, ({ mounts = [] }) => {
      if (mounts.length === 2)
        throw new SallyportError('refused_by_policy', 'taken', { details: { field: 'mounts.1.target' } });
    });
    expect(more.mounts).toEqual([{ source: cwd, target: '/workspace' }]);
    expect(note).toBeUndefined();
  });

  test('has the folder itself judged by the rules for mounts where it gets a copy', async () => {
    const { cwd, more, note } = await made({}, () => {}, { mode: 0o700 });
    expect(more.mounts?.map(({ target }) => target)).toEqual(['/workspace', '/mnt/folder', cwd]);
    expect(more.mounts?.[0]?.source).not.toBe(cwd);
    expect(more.mounts?.[2]?.source).toBe(more.mounts?.[0]?.source);
    expect(more.mounts?.[1]?.source).toBe(cwd);
    expect(note).toContain('a copy of this folder');
  });

  test('goes without a folder that the rules refuse, and says so; other errors are passed on', async () => {
    const { more, note } = await made({}, ({ mounts }) => {
      if (mounts !== undefined) throw new SallyportError('refused_by_policy', 'a home is never mounted');
    });
    expect(more).toEqual({ profile: 'strict' });
    expect(note).toContain('did not have this folder: a home is never mounted');
    const full = () => {
      throw new SallyportError('state_failed', 'the disk is full');
    };
    await expect(made({}, full)).rejects.toMatchObject({ code: 'state_failed' });
  });

  test('has a copy to write to where that is asked for', async () => {
    const { cwd, more } = await made({}, () => {}, { writableCopy: true });
    expect(more).toEqual({ profile: 'standard', workspace: { path: cwd, mode: 'copy' } });
  });
});

describe('[C4] without a container engine a guarded command', () => {
  test('gets bubblewrap where it is, and the answer states the isolation', async () => {
    const { more, note } = await made({}, notChosen);
    expect(more).toMatchObject({ engine: 'bubblewrap', profile: 'strict' });
    expect(note).toContain('isolates less: the kernel is shared; no seccomp of an engine');
  });

  test('gets nothing else where a person named the engine', async () => {
    await expect(made({ engine: 'docker' }, notChosen)).rejects.toMatchObject({ code: 'engine_not_chosen' });
  });
});
