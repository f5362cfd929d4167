/** Judges what the engine can enforce: storage, cgroups, runtimes, seccomp, user namespaces, limits. */

import type { EngineInfo } from '../../engines/docker/system/info.ts';
import { type IsolationLevel, isolationLevel } from '../../protocol/isolation-level.ts';
import type { Check } from './check.ts';

export function checkIsolation(info: EngineInfo): readonly Check[] {
  return [
    checkStorage(info.storageDriver),
    checkCgroups(info),
    checkRuntimes(info),
    checkIsolationLevels(info),
    checkSeccomp(info.securityOptions),
    checkUserNamespaces(info.securityOptions),
    checkLimits(info.limits),
  ];
}

const soundStorage = new Set([
  'overlay2',
  'overlayfs',
  'overlay',
  'fuse-overlayfs',
  'btrfs',
  'zfs',
  'stargz',
]);

export function checkStorage(driver: string): Check {
  const check = { id: 'storage', title: 'storage driver', value: driver } as const;
  if (soundStorage.has(driver)) return { ...check, status: 'ok' };
  const advice =
    driver === 'vfs'
      ? 'vfs copies the whole image for every sandbox: put the data of the engine on ext4 or xfs, so that overlay2 works.'
      : 'Use overlay2: this driver is outdated or unknown to Sallyport.';
  return { ...check, status: 'warn', advice };
}

export function checkCgroups({
  cgroupVersion,
  cgroupDriver,
}: Pick<EngineInfo, 'cgroupVersion' | 'cgroupDriver'>): Check {
  const check = {
    id: 'cgroup',
    title: 'cgroups',
    value: `v${cgroupVersion}, ${cgroupDriver} driver`,
  } as const;
  if (cgroupVersion === '2') return { ...check, status: 'ok' };
  return {
    ...check,
    status: 'warn',
    advice: 'Limits work, but v1 is on its way out: boot with systemd.unified_cgroup_hierarchy=1 for v2.',
  };
}

const isAliasOfRunc = (name: string): boolean =>
  name.startsWith('io.containerd.runc') || name === 'io.containerd.runtime.v1.linux';

export function checkRuntimes({
  runtimes,
  defaultRuntime,
}: Pick<EngineInfo, 'runtimes' | 'defaultRuntime'>): Check {
  const named = runtimes.filter((name) => !isAliasOfRunc(name));
  const strong = named.filter((name) => isolationLevel(name) !== 'container');
  const list = named.map((name) => (name === defaultRuntime ? `${name} (default)` : name)).join(', ');
  const note = strong.length === 0 ? '; none of gVisor (runsc), kata, krun' : '';
  return {
    id: 'runtimes',
    title: 'runtimes',
    status: 'ok',
    value: `${list || 'not named by this engine'}${note}`,
  };
}

const levels: readonly (readonly [IsolationLevel, string])[] = [
  ['vm', 'kata, krun'],
  ['gvisor', 'runsc'],
  ['container', 'runc'],
];

/** What the engine lists. Only a check of `runtime: strongest` says whether it works. */
export function checkIsolationLevels({
  runtimes,
  defaultRuntime,
}: Pick<EngineInfo, 'runtimes' | 'defaultRuntime'>): Check {
  const named = [...new Set([defaultRuntime, ...runtimes])].filter(
    (name) => name !== '' && !isAliasOfRunc(name),
  );
  const offered = levels.map(([level, examples]) => {
    const names = named.filter((name) => isolationLevel(name) === level);
    return { level, names, examples };
  });
  const there = offered.filter(({ names }) => names.length > 0);
  const missing = offered.filter(({ names }) => names.length === 0);
  const value = [
    ...there.map(({ level, names }) => `${level} (${names.join(', ')})`),
    ...missing.map(({ level, examples }) => `no ${level} (${examples})`),
  ].join(', ');
  return {
    id: 'isolation-levels',
    title: 'isolation levels',
    status: 'ok',
    value,
    details: ['as the engine lists them; `--runtime strongest` checks one before it uses it'],
  };
}

/** `name=seccomp,profile=builtin` → the profile, or undefined when the option is not there at all. */
function securityOption(
  options: readonly string[],
  name: string,
): Readonly<Record<string, string>> | undefined {
  for (const option of options) {
    const fields = Object.fromEntries(
      option.split(',').map((field) => field.split('=', 2) as [string, string]),
    );
    if (fields['name'] === name) return fields;
  }
  return undefined;
}

export function checkSeccomp(options: readonly string[]): Check {
  const check = { id: 'seccomp', title: 'seccomp' } as const;
  const seccomp = securityOption(options, 'seccomp');
  if (seccomp === undefined) {
    return {
      ...check,
      status: 'fail',
      value: 'not supported by this engine',
      advice: 'Use a kernel with CONFIG_SECCOMP and an engine built with seccomp.',
    };
  }
  const profile = seccomp['profile'] ?? 'default';
  if (profile === 'unconfined') {
    return {
      ...check,
      status: 'fail',
      value: 'the engine runs containers unconfined',
      advice: 'Remove "seccomp-profile": "unconfined" from the configuration of the engine.',
    };
  }
  return { ...check, status: 'ok', value: `profile ${profile}` };
}

export function checkUserNamespaces(options: readonly string[]): Check {
  const check = { id: 'user-namespaces', title: 'user namespaces', status: 'ok' } as const;
  if (securityOption(options, 'rootless') !== undefined) return { ...check, value: 'rootless engine' };
  if (securityOption(options, 'userns') !== undefined) return { ...check, value: 'user ids are remapped' };
  return { ...check, value: 'not remapped; a sandbox never runs as root' };
}

export function checkLimits(limits: EngineInfo['limits']): Check {
  const check = { id: 'limits', title: 'limits' } as const;
  const missing = (['memory', 'cpu', 'pids'] as const).filter((name) => !limits[name]);
  if (missing.length > 0) {
    return {
      ...check,
      status: 'fail',
      value: `the engine cannot limit ${missing.join(', ')}`,
      advice:
        'Enable these cgroup controllers (rootless: delegate them to your user), or one sandbox can starve the machine.',
    };
  }
  if (!limits.swap) {
    return {
      ...check,
      status: 'warn',
      value: 'memory, cpu, pids; not swap',
      advice: 'Boot with swapaccount=1, or turn swap off: a sandbox at its memory limit may fill it.',
    };
  }
  return { ...check, status: 'ok', value: 'memory, cpu, pids, swap' };
}
