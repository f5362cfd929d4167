/** The test files of the checkout with their text, also those that are not checked in yet. */

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './steps.mjs';

export function testSources() {
  const listed = execFileSync(
    'git',
    ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--', '*.test.ts'],
    { cwd: root, encoding: 'utf8' },
  );
  return [...new Set(listed.split('\0'))]
    .filter((file) => file !== '' && existsSync(join(root, file)))
    .map((file) => ({ file, text: readFileSync(join(root, file), 'utf8') }));
}
