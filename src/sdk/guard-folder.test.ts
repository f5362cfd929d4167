import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../test/support/little-engine.ts';
import type { GuardImage } from '../guard/sandbox-image.ts';
import { SallyportError } from '../protocol/errors.ts';
import { type AddedSpec, inFolder } from './guard.ts';

/** What a sandbox would be made of, where the engine answers the way a test says. */
async function made(
  spec: Parameters<typeof inFolder>[0],
  answer: (more: AddedSpec) => void,
  {
    mode = 0o755,
    writableCopy = false,
    guardImage,
  }: { mode?: number; writableCopy?: boolean; guardImage?: GuardImage } = {},
) {
  const cwd = join(temporaryFolder(), 'project');
  mkdirSync(cwd);
  chmodSync(cwd, mode);
  const tried: AddedSpec[] = [];
  const places = { cwd, writableCopy, stateDir: temporaryFolder(), guardImage };
  const result = await inFolder(spec, places, async (more) => {
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

describe('[C2][O7] the image of a guarded command', () => {
  const setting = (field: GuardImage['field']): GuardImage => ({
    field,
    image: 'alpine:latest',
    source: 'user',
    where: '/user.yaml',
  });

  test('is guard.image, as if it was named; of other settings it is a default', async () => {
    const named = await made({}, () => {}, { guardImage: setting('guard.image') });
    expect(named.more).toMatchObject({ image: 'alpine:latest', profile: 'strict' });
    expect(named.more.images).toBeUndefined();
    for (const field of ['images.strict', 'images.default'] as const) {
      const { more } = await made({}, () => {}, { guardImage: setting(field), writableCopy: true });
      expect(more).toMatchObject({
        images: { default: 'alpine:latest', strict: 'alpine:latest' },
        profile: 'standard',
      });
      expect(more.image).toBeUndefined();
    }
  });

  test('is that of the caller where there is one', async () => {
    for (const spec of [{ image: 'x' }, { agent: 'claude' }, { images: { strict: 'x' } }]) {
      const { more } = await made(spec, () => {}, { guardImage: setting('guard.image') });
      expect([more.image, more.images]).toEqual([undefined, undefined]);
    }
  });

  test('is left out on an engine without images, and the answer says so', async () => {
    const refuse = ({ image }: AddedSpec): void => {
      if (image === undefined) return;
      throw new SallyportError('engine_unsupported', 'image: bubblewrap has no images', {
        details: { field: 'image' },
      });
    };
    const { more, note } = await made({}, refuse, { guardImage: setting('guard.image') });
    expect(more.image).toBeUndefined();
    expect(note).toBe('it did not have guard.image (alpine:latest): image: bubblewrap has no images');
    const other = (): never => {
      throw new SallyportError('image_pull_failed', 'no registry has it');
    };
    await expect(made({}, other, { guardImage: setting('guard.image') })).rejects.toMatchObject({
      code: 'image_pull_failed',
    });
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
