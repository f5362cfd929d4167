/** `sally init`: a commented `sallyport.yaml` in this folder. */

import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { initFile } from '../../config/init-file.ts';
import { schemaPath } from '../../config/spec-json-schema.ts';
import { packageInfo } from '../../lib/package-root.ts';
import { SallyportError } from '../../protocol/errors.ts';
import { exitCode } from '../exit-codes.ts';
import { print } from '../output.ts';

const fileName = 'sallyport.yaml';

export async function initCommand(options: { readonly force?: true }): Promise<number> {
  const file = join(process.cwd(), fileName);
  const handle = await open(file, options.force === true ? 'w' : 'wx').catch(
    (error: NodeJS.ErrnoException) => {
      throw error.code === 'EEXIST' ? exists(file) : cannotWrite(file, error);
    },
  );
  try {
    await handle.writeFile(initFile(join(packageInfo().root, schemaPath)));
  } finally {
    await handle.close();
  }
  print(file);
  return exitCode.ok;
}

const exists = (file: string): SallyportError =>
  new SallyportError('usage', `there is a ${fileName} already: ${file}`, {
    advice: 'Edit it, or replace it with --force.',
  });

const cannotWrite = (file: string, cause: Error): SallyportError =>
  new SallyportError('usage', `${file} cannot be written: ${cause.message}`, {
    advice: 'Choose a folder that you may write to.',
    cause,
  });
