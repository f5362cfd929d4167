import { expect, it } from 'vitest';
import { defaultImage } from './default-image.ts';

const images = { default: 'd', strict: 's' };

it('[O1][C2] the default image is that of the profile, and only where no image and no agent is named', () => {
  expect(defaultImage({ images })).toBe('d');
  expect(defaultImage({ images, profile: 'standard' })).toBe('d');
  expect(defaultImage({ images, profile: 'strict' })).toBe('s');
  // Neither stands in for the other.
  expect(defaultImage({ images: { default: 'd' }, profile: 'strict' })).toBeUndefined();
  expect(defaultImage({ images: { strict: 's' } })).toBeUndefined();
  expect(defaultImage({ images, image: 'named' })).toBeUndefined();
  expect(defaultImage({ images, agent: 'claude' })).toBeUndefined();
  expect(defaultImage({})).toBeUndefined();
});
