/**
 * The image of guarded commands that are sent to a sandbox: `guard.image`, else `images.strict`, else `images.default`, each of
 * the environment or the user's own file.
 *
 * SECURITY: never of a project file: an agent that writes the project would choose the image that its guarded commands run in.
 */

import { SallyportError } from '../protocol/errors.ts';
import { imageReference } from '../protocol/spec-values.ts';
import { type ConfigEnvironment, guardImageVariable } from './config.ts';
import type { UserFile } from './user-file.ts';

export interface GuardImage {
  readonly field: 'guard.image' | 'images.strict' | 'images.default';
  readonly image: string;
  readonly source: 'environment' | 'user';
  /** The variable or the file. */
  readonly where: string;
}

/** Undefined: Sallyport's base image. */
export function guardImage(
  { guardImage: variable, source }: Pick<ConfigEnvironment, 'guardImage' | 'source'>,
  user: UserFile | undefined,
): GuardImage | undefined {
  const { fragment, names = {} } = source;
  const settings = [
    ['guard.image', variable, user?.guardImage],
    ['images.strict', fragment.images?.strict, user?.spec.images?.strict],
    ['images.default', fragment.images?.default, user?.spec.images?.default],
  ] as const;
  for (const [field, here, own] of settings) {
    if (here !== undefined) {
      const where = names[field] ?? guardImageVariable;
      return { field, image: checked(where, here), source: 'environment', where };
    }
    if (own !== undefined && user !== undefined)
      return { field, image: own, source: 'user', where: user.file };
  }
  return undefined;
}

/** A file was checked when it was read. */
function checked(variable: string, image: string): string {
  if (imageReference.safeParse(image).success) return image;
  throw new SallyportError(
    'config_invalid',
    `${variable} (${JSON.stringify(image.slice(0, 60))}) is no image reference`,
    { details: { variable }, advice: `Set ${variable} to a name such as alpine:latest, or unset it.` },
  );
}
