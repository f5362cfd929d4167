/**
 * The user's own file, `$XDG_CONFIG_HOME/sallyport/config.yaml`: defaults for every sandbox, and for project files also
 * limits. It is trusted as the user is. What belongs to one project cannot be in it.
 */

import { dirname } from 'node:path';
import { z } from 'zod';
import { type GuardLists, guardListsSchema } from '../protocol/guard-lists.ts';
import { type SecretStore, secretStores } from '../protocol/secrets.ts';
import { type SpecInput, specSchema } from '../protocol/spec.ts';
import { imageReference } from '../protocol/spec-values.ts';
import { type SpecFragment, withAbsolutePaths } from './spec-source.ts';
import { parseConfigText, readConfigFile } from './yaml-file.ts';

export const userFileSchema = specSchema
  .omit({ name: true, workspace: true, workdir: true, command: true })
  .extend({
    guard: guardListsSchema.extend({ image: imageReference.optional() }).optional(),
    secrets: z.strictObject({ store: z.enum(secretStores).optional() }).optional(),
  });

export interface UserFile {
  readonly file: string;
  readonly spec: SpecFragment;
  /** What is said there about commands, for `sally eval`. */
  readonly guard?: GuardLists;
  /** The image of guarded commands that are sent to a sandbox. */
  readonly guardImage?: string;
  /** Where `sally secret set` keeps values. */
  readonly secretStore?: SecretStore;
}

export async function readUserFile(file: string, home: string): Promise<UserFile | undefined> {
  const text = await readConfigFile(file);
  if (text === undefined) return undefined;
  const { guard, secrets, ...spec } = parseConfigText(file, text, userFileSchema) as SpecInput & {
    readonly guard?: GuardLists & { readonly image?: string };
    readonly secrets?: { readonly store?: SecretStore };
  };
  const { image: guardImage, ...lists } = guard ?? {};
  return {
    file,
    spec: withAbsolutePaths(spec, dirname(file), home),
    ...(guard === undefined ? {} : { guard: lists }),
    ...(guardImage === undefined ? {} : { guardImage }),
    ...(secrets?.store === undefined ? {} : { secretStore: secrets.store }),
  };
}
