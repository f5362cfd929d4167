/** Judges the versions of the engine and its parts. */

import { compareApi, newestApi, oldestApi } from '../../engines/docker/connect.ts';
import type { EngineVersion } from '../../engines/docker/system/version.ts';
import type { Check } from './check.ts';
import type { Component } from './known-vulnerabilities.ts';
import { isDistributionBuild, parseVersion } from './version-order.ts';
import { vulnerabilitiesOf } from './vulnerable.ts';

export function checkVersions(version: EngineVersion): readonly Check[] {
  const part = (name: string): string | undefined =>
    version.components[name] ?? version.components[`${name}.io`];
  return [
    checkComponent('engine', 'engine version', version.engine, version.builds['engine']),
    checkApi(version.api),
    checkComponent('containerd', 'containerd', part('containerd'), version.builds['containerd']),
    checkComponent('runc', 'runc', part('runc'), version.builds['runc']),
  ];
}

export function checkComponent(
  component: Component,
  title: string,
  version: string | undefined,
  build = '',
): Check {
  const id = `${component}-version`;
  if (version === undefined || parseVersion(version) === undefined) {
    // Podman and Docker Desktop do not name every part.
    return { id, title, status: 'ok', value: version ?? 'not named by this engine' };
  }
  const flaws = vulnerabilitiesOf(component, version);
  if (flaws.length === 0) return { id, title, status: 'ok', value: version };
  const byDistribution = isDistributionBuild(version, build);
  const escapes = flaws.some(({ impact }) => impact === 'escape');
  const names = flaws.map(({ cve }) => cve).join(', ');
  return {
    id,
    title,
    status: escapes && !byDistribution ? 'fail' : 'warn',
    value: `${byDistribution && build !== '' && parseVersion(build) ? build : version}: ${names}`,
    advice: byDistribution
      ? 'May be fixed by your distribution without a new upstream version: keep it updated, and look these up in its security tracker.'
      : `Upgrade ${component === 'engine' ? 'the engine' : component} to a fixed version.`,
    details: flaws.map(({ cve, fixed, what }) => `${cve} (fixed in ${fixed.join(', ')}): ${what}`),
  };
}

function checkApi(api: string): Check {
  const check = { id: 'api-version', title: 'API version' } as const;
  if (compareApi(api, oldestApi) < 0) {
    return {
      ...check,
      status: 'fail',
      value: `${api}, at least ${oldestApi} is needed`,
      advice: 'Upgrade the engine to Docker Engine 20.10 or newer.',
    };
  }
  const spoken = compareApi(api, newestApi) < 0 ? api : newestApi;
  return { ...check, status: 'ok', value: spoken === api ? api : `${api}, spoken as ${spoken}` };
}
