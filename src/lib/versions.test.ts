import { describe, expect, it } from 'vitest';
import { compareVersions, isVersion } from './versions.ts';

describe('versions', () => {
  it('[N23] are ordered as Semantic Versioning orders them', () => {
    const ordered = [
      '0.2.0-0',
      '0.2.0-alpha',
      '0.2.0-alpha.1',
      '0.2.0-alpha.beta',
      '0.2.0-beta.2',
      '0.2.0-beta.11',
      '0.2.0-rc.1',
      '0.2.0',
      '0.2.1',
      '0.10.0',
      '1.0.0',
    ];
    for (const [i, a] of ordered.entries()) {
      for (const [j, b] of ordered.entries())
        expect(Math.sign(compareVersions(a, b)), `${a} ${b}`).toBe(Math.sign(i - j));
    }
  });

  it.each(['', '1', '1.2', 'v1.2.3', '1.2.3 ', '1.2.3+build', '1.2.3-', '1.2.3-a..b', '1.2.9999999999'])(
    '%j is not a version',
    (text) => {
      expect(isVersion(text)).toBe(false);
      expect(() => compareVersions(text, '1.0.0')).toThrow(RangeError);
    },
  );
});
