import { it } from 'vitest';
import { porterBinaryPath } from '../../src/porter/binary.ts';
import { loseNothing } from '../support/lossless.ts';
import { listening, nativeArchitecture, startPorter } from '../support/porter-child.ts';

it('not one byte of output and no exit code is lost, however often the host is killed', async () => {
  const child = startPorter([]);
  await listening(child);
  const porter = porterBinaryPath(nativeArchitecture);
  await loseNothing({
    name: 'a child',
    seed: 20_261_115,
    door: () => ({ kind: 'child', porter, pid: child.child.pid ?? 0 }),
  });
}, 600_000);
