import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageInfo } from '../../src/lib/package-root.ts';
import { fuzzHost } from '../fuzz/host.ts';
import { fuzzPorter } from '../fuzz/porter.ts';
import { commandExists, requirement } from '../support/requires.ts';

const folder = join(packageInfo().root, 'porter');
const seed = 20_261_115;

describe('a short seeded run of `npm run fuzz`', () => {
  it('finds nothing in the host half', async () => {
    await fuzzHost({ seed, cases: 10_000 });
  });

  it.runIf(requirement('gcc', commandExists('gcc')))(
    'finds nothing in porter under ASan and UBSan',
    async () => {
      expect(spawnSync('make', ['-s', '-C', folder, 'sanitize'], { stdio: 'inherit' }).status).toBe(0);
      await fuzzPorter(join(folder, 'build', 'porter-sanitize'), { seed, cases: 60, sideBySide: 4 });
    },
  );
});
