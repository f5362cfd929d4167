/** Checks every Markdown file of the repository; `docs-rules.mjs` and `bypass-rows.mjs` have the rules. A part of `npm run check`. */

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bypassProblems } from './bypass-rows.mjs';
import { docProblems } from './docs-rules.mjs';
import { root } from './steps.mjs';

/** Those of the index, and new ones that will be: what is ignored is nothing that a document may name. */
const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
  maxBuffer: 64 * 2 ** 20,
});
const paths = [...new Set(listed.split('\0'))].filter((path) => path !== '' && existsSync(join(root, path)));
const documents = paths
  .filter((path) => path.endsWith('.md'))
  .map((file) => ({ file, text: readFileSync(join(root, file), 'utf8') }));

const problems = [...docProblems(documents, paths), ...bypassProblems(documents, paths)];
for (const { file, line, message } of problems) console.error(`${file}:${line}: ${message}`);
process.exitCode = problems.length === 0 ? 0 : 1;
