import { describe, expect, it } from 'vitest';
import { knownVulnerabilities } from './known-vulnerabilities.ts';
import { compareVersions, isDistributionBuild, parseVersion } from './version-order.ts';
import { checkComponent } from './versions.ts';
import { isAffected } from './vulnerable.ts';

describe('isAffected', () => {
  const runc2025 = { fixed: ['1.2.8', '1.3.3', '1.4.0-rc.3'] };
  it.each([
    ['1.1.15', true],
    ['1.2.7', true],
    ['1.2.8', false],
    ['v1.2.9', false],
    ['1.3.0', true],
    ['1.3.3', false],
    ['1.4.0-rc.2', true],
    ['1.4.0-rc.3', false],
    ['1.4.0', false],
    ['1.5.0', false],
    ['1.1.5+ds1-1+deb12u1', true],
    ['not a version', false],
  ])('judges runc %s against fixes on three branches: %s', (version, expected) => {
    expect(isAffected(version, runc2025)).toBe(expected);
  });

  it.each([
    ['28.1.1', false],
    ['28.2.0', true],
    ['28.3.2', true],
    ['28.3.3', false],
    ['29.0.0', false],
  ])('knows where a flaw begins: engine %s is affected: %s', (version, expected) => {
    expect(isAffected(version, { introduced: '28.2.0', fixed: ['28.3.3'] })).toBe(expected);
  });
});

describe('known vulnerabilities', () => {
  it.each(knownVulnerabilities.map((entry) => [entry.cve, entry] as const))(
    '%s has only versions that can be compared, in order',
    (_cve, { introduced, fixed }) => {
      const versions = [...(introduced === undefined ? [] : [introduced]), ...fixed].map(parseVersion);
      for (const [index, version] of versions.entries()) {
        expect(version).toBeDefined();
        const before = versions[index - 1];
        if (before !== undefined && version !== undefined)
          expect(compareVersions(before, version)).toBeLessThan(0);
      }
    },
  );
});

describe('isDistributionBuild', () => {
  it.each([
    ['1.1.5+ds1-1+deb12u1', true],
    ['20.10.24+dfsg1', true],
    ['1.6.20~ds1', true],
    ['24.0.7-0ubuntu4', true],
    ['1.1.12-3.fc39', true],
    ['27.5.1', false],
    ['v1.7.24', false],
    ['1.4.0-rc.3', false],
    ['v1.1.12-0-g51d5e94', false],
    ['061792f0ecf3684fb30a3a0eb006799b8c6638a7', false],
    ['', false],
  ])('%s: %s', (version, expected) => {
    expect(isDistributionBuild(version)).toBe(expected);
  });
});

describe('checkComponent', () => {
  it.each([
    ['an escape in an upstream build', '1.1.5', 'v1.1.5-0-gf19387a', 'fail'],
    ["an escape that the distribution's build may have fixed", '1.1.5+ds1', '1.1.5+ds1-1+deb12u1', 'warn'],
    ['a fixed version', '1.3.3', '', 'ok'],
    ['a part that the engine does not name', undefined, '', 'ok'],
  ])('judges %s', (_name, version, build, status) => {
    expect(checkComponent('runc', 'runc', version, build).status).toBe(status);
  });

  it('names the flaws and says that a distribution may have fixed them', () => {
    const check = checkComponent('runc', 'runc', '1.1.5+ds1', '1.1.5+ds1-1+deb12u1');
    expect(check.value).toContain('CVE-2024-21626');
    expect(check.advice).toContain('fixed by your distribution');
  });

  it('only warns of a flaw that leads nobody out', () => {
    expect(checkComponent('engine', 'engine', '27.5.1').status).toBe('warn');
  });
});
