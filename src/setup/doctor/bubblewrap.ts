/** Whether the engine of last resort could work: bubblewrap and the user namespaces that it needs. */

import { readFile } from 'node:fs/promises';
import type { SetupEnvironment } from '../config.ts';
import { gatherHostFacts } from '../host-facts.ts';
import { runCommand } from '../run-command.ts';
import type { Check } from './check.ts';

export interface BubblewrapFacts {
  readonly platform: NodeJS.Platform;
  readonly version?: string;
  readonly isRoot: boolean;
  /** The kernel's switches; absent where this kernel has none. */
  readonly maxUserNamespaces?: number;
  readonly unprivilegedClone?: number;
  readonly appArmorRestricts?: number;
}

export function checkBubblewrap(facts: BubblewrapFacts): Check {
  const check = { id: 'bubblewrap', title: 'bubblewrap' } as const;
  if (facts.platform !== 'linux') return { ...check, status: 'ok', value: 'only on Linux' };
  if (facts.version === undefined) {
    return {
      ...check,
      status: 'warn',
      value: 'not installed',
      advice: 'Only needed without an engine: install the package `bubblewrap`.',
    };
  }
  const closed =
    facts.maxUserNamespaces === 0 ||
    (!facts.isRoot && (facts.unprivilegedClone === 0 || facts.appArmorRestricts === 1));
  if (!closed) return { ...check, status: 'ok', value: facts.version };
  return {
    ...check,
    status: 'warn',
    value: `${facts.version}, but user namespaces are closed to this user`,
    advice: 'Only needed without an engine: allow unprivileged user namespaces (`sysctl -a | grep userns`).',
  };
}

export async function gatherBubblewrap(env: SetupEnvironment): Promise<BubblewrapFacts> {
  const { programs, isRoot, platform } = await gatherHostFacts(env);
  const [maxUserNamespaces, unprivilegedClone, appArmorRestricts] = await Promise.all([
    kernelNumber('user/max_user_namespaces'),
    kernelNumber('kernel/unprivileged_userns_clone'),
    kernelNumber('kernel/apparmor_restrict_unprivileged_userns'),
  ]);
  const version = programs.bwrap === undefined ? undefined : await bubblewrapVersion(programs.bwrap, env);
  return {
    platform,
    isRoot,
    ...(version === undefined ? {} : { version }),
    ...(maxUserNamespaces === undefined ? {} : { maxUserNamespaces }),
    ...(unprivilegedClone === undefined ? {} : { unprivilegedClone }),
    ...(appArmorRestricts === undefined ? {} : { appArmorRestricts }),
  };
}

async function bubblewrapVersion(program: string, env: SetupEnvironment): Promise<string> {
  const options = { environment: env.childVariables, timeoutMs: 3_000 };
  const { exitCode, outputTail } = await runCommand([program, '--version'], options);
  return exitCode === 0 ? outputTail.replace(/^bubblewrap /, '') : 'installed, but does not run';
}

async function kernelNumber(name: string): Promise<number | undefined> {
  const text = await readFile(`/proc/sys/${name}`, 'utf8').catch(() => undefined);
  return text === undefined ? undefined : Number(text.trim());
}
