import { describe, expect, it } from 'vitest';
import type { ProgressEvent } from '../lib/progress.ts';
import { silent } from '../lib/progress.ts';
import {
  bootstrapProgress,
  mmdebstrapArguments,
  type PackageMachine,
  requireMmdebstrap,
} from './mmdebstrap.ts';
import { readRecipe } from './recipe.ts';

function machine(facts: { has?: boolean; debian?: boolean; root?: boolean; unpack?: boolean }) {
  const installed: string[] = [];
  const of: PackageMachine = {
    hasMmdebstrap: async () => facts.has ?? false,
    isDebianLike: async () => facts.debian ?? true,
    canInstall: () => facts.root ?? true,
    canUnpack: () => facts.unpack ?? true,
    install: async (packages) => void installed.push(...packages),
  };
  return { of, installed };
}

const answering = (yes: boolean) => ({ progress: silent, consent: async () => yes });

describe('mmdebstrap', () => {
  it('is installed only after a yes', async () => {
    const agreed = machine({});
    await requireMmdebstrap(answering(true), agreed.of);
    expect(agreed.installed).toEqual(['mmdebstrap']);

    const refused = machine({});
    await expect(requireMmdebstrap(answering(false), refused.of)).rejects.toMatchObject({
      code: 'setup_refused',
    });
    expect(refused.installed).toEqual([]);
  });

  it('is used as it is where it is there', async () => {
    const there = machine({ has: true, debian: false, root: false });
    await requireMmdebstrap(answering(false), there.of);
    expect(there.installed).toEqual([]);
  });

  it('says what an ordinary user needs to use it', async () => {
    const there = machine({ has: true, root: false, unpack: false });
    await expect(requireMmdebstrap(answering(true), there.of)).rejects.toMatchObject({
      code: 'setup_impossible',
      advice: expect.stringContaining('uidmap'),
    });
  });

  it.each([{ debian: false }, { root: false }])(
    'cannot be had on a machine with %j, and the error says what to do',
    async (facts) => {
      await expect(requireMmdebstrap(answering(true), machine(facts).of)).rejects.toMatchObject({
        code: 'setup_impossible',
      });
    },
  );

  it('is told the packages and excludes of the recipe, and to write to stdout', async () => {
    const recipe = await readRecipe('base', 'arm64');
    const args = mmdebstrapArguments(recipe);
    expect(args.at(-1)).toBe('-');
    expect(args).toContain('--architectures=arm64');
    expect(args.find((arg) => arg.startsWith('--setup-hook='))).toContain(recipe.excludesPath);
    expect(args.find((arg) => arg.startsWith('--include='))).toContain('ripgrep');
  });

  it('is followed stage by stage and package by package', () => {
    const seen: ProgressEvent[] = [];
    const read = bootstrapProgress((event) => seen.push(event));
    for (const line of ['I: extracting archives...', 'Get:1 http://x', 'Setting up bash (5.2-1) ...'])
      read(line);
    expect(seen).toEqual([
      { step: 'bootstrap', message: 'extracting archives...' },
      { step: 'bootstrap', message: 'Setting up bash', current: 1 },
    ]);
  });
});
