/** The image of a sandbox whose spec names neither an image nor an agent, by the settings `images.default` and `images.strict`. Pure. */

import type { SpecInput } from './spec.ts';

type Chooser = Pick<SpecInput, 'image' | 'agent' | 'profile' | 'images'>;

/** Which of the two settings counts. */
export const imageSetting = (profile: Chooser['profile']): 'default' | 'strict' =>
  profile === 'strict' ? 'strict' : 'default';

/** Undefined: an image or an agent is named, or Sallyport's base image is used. A `Dockerfile.sallyport` of the workspace takes precedence. */
export function defaultImage({ image, agent, profile, images }: Chooser): string | undefined {
  return image === undefined && agent === undefined ? images?.[imageSetting(profile)] : undefined;
}
