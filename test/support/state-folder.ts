/**
 * `SALLYPORT_STATE_DIR` of the command line in tests. Files that run at the same time have one each, and with it a daemon
 * and an owner id of their own: what one lists, counts, prunes or stops is never another's. Files that run one after
 * another share it, because a daemon takes longer to start than most tests take.
 */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { inject } from 'vitest';
import { engineUnderTest, onDocker } from './engine-under-test.ts';
import './provided.ts';

export function stateFolder(): string {
  // Vitest numbers the places of its workers from 1, and no two files hold one number at a time.
  const place = process.env['VITEST_POOL_ID'] ?? '1';
  // A daemon works with one engine.
  const folder = join(inject('stateFolders'), onDocker ? place : `${place}-${engineUnderTest}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}
