import { expect, it } from 'vitest';
import { execBody } from './requests.ts';

it('[G5] a command has 300 s, and 5 s from TERM to KILL, unless the request says otherwise', () => {
  const { timeout_ms, grace_ms } = execBody.parse({ argv: ['true'] });
  expect([timeout_ms, grace_ms]).toEqual([300_000, 5000]);
});
