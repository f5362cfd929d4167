import { it } from 'vitest';
import { porterBinaryPath } from '../../src/porter/binary.ts';
import { loseNothing } from '../support/lossless.ts';
import { listening, nativeArchitecture, startPorter } from '../support/porter-child.ts';

it('not one byte of output and no exit code is lost, however often the host is killed', async () => {
  const child = startPorter([]);
  await listening(child);
  const porter = porterBinaryPath(nativeArchitecture);
  await loseNothing(() => ({ kind: 'child', porter, pid: child.child.pid ?? 0 }), 20_261_115);
}, 300_000);
