/**
 * The user's own file, `$XDG_CONFIG_HOME/sallyport/config.yaml`: defaults for every sandbox, and for project files also
 * limits. It is trusted as the user is. What belongs to one project cannot be in it.
 */

import { dirname } from 'node:path';
import { type SpecInput, specSchema } from '../protocol/spec.ts';
import { type SpecFragment, withAbsolutePaths } from './spec-source.ts';
import { parseConfigText, readConfigFile } from './yaml-file.ts';

export const userFileSchema = specSchema.omit({ name: true, workspace: true, workdir: true, command: true });

export interface UserFile {
  readonly file: string;
  readonly spec: SpecFragment;
}

export async function readUserFile(file: string, home: string): Promise<UserFile | undefined> {
  const text = await readConfigFile(file);
  if (text === undefined) return undefined;
  const spec = parseConfigText(file, text, userFileSchema) as SpecInput;
  return { file, spec: withAbsolutePaths(spec, dirname(file), home) };
}
