/** Rules that were tried on a running sandbox, written into the folder's `sallyport.yaml`; comments and order stay. */

import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { isSeq, parseDocument } from 'yaml';
import { SallyportError } from '../protocol/errors.ts';

/** Returns the file. A rule that is there already is not written again. */
export async function saveRules(
  use: 'allow' | 'deny',
  rules: readonly string[],
  path: string | undefined,
): Promise<string> {
  const file = path === undefined ? join(process.cwd(), 'sallyport.yaml') : resolve(path);
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  const document = parseDocument(text);
  if (document.errors.length > 0) {
    throw new SallyportError('usage', `${file} is no YAML: ${document.errors[0]?.message ?? ''}`, {
      advice: 'Correct the file; the rules hold in the sandbox already.',
    });
  }
  const list = document.getIn(['egress', use]);
  const known = isSeq(list) ? (list.toJSON() as unknown[]) : [];
  const added = rules.filter((rule) => !known.includes(rule));
  if (isSeq(list)) for (const rule of added) list.add(rule);
  else document.setIn(['egress', use], [...rules]);
  await writeFile(file, document.toString());
  return file;
}
