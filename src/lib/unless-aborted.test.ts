import { expect, test } from 'vitest';
import { unlessAborted } from './unless-aborted.ts';

test('work is waited for until it is done, or until the signal fires', async () => {
  const { signal } = new AbortController();
  expect(await unlessAborted(Promise.resolve(7), signal)).toBe(7);
  await expect(unlessAborted(Promise.reject(new Error('failed')), signal)).rejects.toThrow('failed');
  const ending = new AbortController();
  const waiting = unlessAborted(new Promise(() => {}), ending.signal);
  ending.abort(new Error('enough'));
  await expect(waiting).rejects.toThrow('enough');
  await expect(unlessAborted(Promise.resolve(7), ending.signal)).rejects.toThrow('enough');
});
