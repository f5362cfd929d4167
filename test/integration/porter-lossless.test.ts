import { inject, it } from 'vitest';
import { makeBox } from '../support/box.ts';
import { loseNothing } from '../support/lossless.ts';

it('not one byte of output and no exit code of a sandbox is lost, however often the host is killed', async () => {
  const { id } = await makeBox();
  const { endpoint, apiVersion } = inject('engine');
  const door = { endpoint, apiVersion, id };
  await loseNothing((index) => ({ ...door, kind: index === 0 ? 'attach' : 'relay' }), 42);
}, 300_000);
