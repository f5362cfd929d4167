import { describe, expect, it } from 'vitest';
import { stoppable } from './stoppable.ts';

function counting(): { readonly values: () => AsyncGenerator<number, void>; readonly over: Promise<void> } {
  let end = (): void => {};
  const over = new Promise<void>((resolve) => {
    end = resolve;
  });
  return {
    over,
    values: async function* () {
      try {
        for (let value = 0; ; value++) yield value;
      } finally {
        end();
      }
    },
  };
}

describe('an iterator that can be stopped', () => {
  it('lets go of what it holds when it is aborted between two values, also if nobody asks again', async () => {
    const { values, over } = counting();
    const abort = new AbortController();
    const iterator = stoppable({ values, signal: abort.signal });
    expect(await iterator.next()).toEqual({ done: false, value: 0 });
    abort.abort();
    await over;
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
  });

  it('lets go when its reader leaves', async () => {
    const { values, over } = counting();
    for await (const value of stoppable({ values })) if (value === 3) break;
    await over;
  });
});
