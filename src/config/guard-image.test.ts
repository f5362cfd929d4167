import { describe, expect, it } from 'vitest';
import { readConfigEnvironment } from './config.ts';
import { guardImage } from './guard-image.ts';
import type { UserFile } from './user-file.ts';

const environment = (env: Record<string, string> = {}) => readConfigEnvironment({ HOME: '/home/me', ...env });
const user = (more: Partial<UserFile>): UserFile => ({ file: '/user.yaml', spec: {}, ...more });

describe('[O7] the image of guarded commands', () => {
  const images = { default: 'user-d', strict: 'user-s' };

  it('[C2] is guard.image, else images.strict, else images.default, else the base image', () => {
    const all = user({ guardImage: 'user-g', spec: { images } });
    expect(guardImage(environment(), all)).toMatchObject({ field: 'guard.image', image: 'user-g' });
    expect(guardImage(environment(), user({ spec: { images } }))).toEqual({
      field: 'images.strict',
      image: 'user-s',
      source: 'user',
      where: '/user.yaml',
    });
    const last = user({ spec: { images: { default: 'user-d' } } });
    expect(guardImage(environment(), last)).toMatchObject({ field: 'images.default', image: 'user-d' });
    expect(guardImage(environment(), user({ spec: { image: 'named' } }))).toBeUndefined();
    expect(guardImage(environment(), undefined)).toBeUndefined();
  });

  it('is that of the environment before that of the file, setting by setting', () => {
    const file = user({ guardImage: 'user-g', spec: { images } });
    expect(guardImage(environment({ SALLYPORT_GUARD_IMAGE: 'g' }), file)).toEqual({
      field: 'guard.image',
      image: 'g',
      source: 'environment',
      where: 'SALLYPORT_GUARD_IMAGE',
    });
    // A weaker setting of a stronger source is still the weaker setting.
    expect(guardImage(environment({ SALLYPORT_STRICT_IMAGE: 's' }), file)?.image).toBe('user-g');
    expect(
      guardImage(environment({ SALLYPORT_STRICT_IMAGE: 's' }), user({ spec: { images } })),
    ).toMatchObject({
      image: 's',
      where: 'SALLYPORT_STRICT_IMAGE',
    });
  });

  it.each(['SALLYPORT_GUARD_IMAGE', 'SALLYPORT_STRICT_IMAGE', 'SALLYPORT_DEFAULT_IMAGE'])(
    'is refused where %s is no image reference',
    (name) => {
      expect(() => guardImage(environment({ [name]: '--privileged' }), undefined)).toThrow(
        expect.objectContaining({
          code: 'config_invalid',
          message: `${name} ("--privileged") is no image reference`,
        }),
      );
    },
  );
});
