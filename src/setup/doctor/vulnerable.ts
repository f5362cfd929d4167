/** Which known flaws a version has. */

import { type Component, knownVulnerabilities, type Vulnerability } from './known-vulnerabilities.ts';
import { compareVersions, parseVersion, sameBranch } from './version-order.ts';

export function vulnerabilitiesOf(
  component: Component,
  versionText: string,
  table: readonly Vulnerability[] = knownVulnerabilities,
): readonly Vulnerability[] {
  return table.filter((entry) => entry.component === component && isAffected(versionText, entry));
}

export function isAffected(
  versionText: string,
  { introduced, fixed }: Pick<Vulnerability, 'introduced' | 'fixed'>,
): boolean {
  const version = parseVersion(versionText);
  if (version === undefined) return false;
  const first = introduced === undefined ? undefined : parseVersion(introduced);
  if (first !== undefined && compareVersions(version, first) < 0) return false;
  const fixes = fixed.map(parseVersion).filter((fix) => fix !== undefined);
  const ownBranch = fixes.find((fix) => sameBranch(fix, version));
  if (ownBranch !== undefined) return compareVersions(version, ownBranch) < 0;
  // No fix on its own branch: only a version later than every fix has them all.
  return fixes.some((fix) => compareVersions(version, fix) < 0);
}
