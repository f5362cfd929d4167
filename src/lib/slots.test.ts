import { expect, it } from 'vitest';
import { deferred } from './deferred.ts';
import { Slots } from './slots.ts';

/** Whoever may begin has begun after it. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

it('lets no more in than there are slots, in the order they came, also after a failure', async () => {
  const slots = new Slots(2);
  const gates = [deferred<void>(), deferred<void>(), deferred<void>(), deferred<void>()];
  const begun: number[] = [];
  const runs = gates.map((gate, index) =>
    slots.run(async () => {
      begun.push(index);
      await gate.promise;
    }),
  );
  await turn();
  expect(begun).toEqual([0, 1]);
  gates[1]?.reject(new Error('broken'));
  await expect(runs[1]).rejects.toThrow('broken');
  await turn();
  expect(begun).toEqual([0, 1, 2]);
  gates[0]?.resolve();
  await runs[0];
  await turn();
  expect(begun).toEqual([0, 1, 2, 3]);
  gates[2]?.resolve();
  gates[3]?.resolve();
  await Promise.all([runs[2], runs[3]]);
});
