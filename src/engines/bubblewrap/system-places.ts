/** What of this machine's own system is inside a box, read-only. Everything else of it is not there at all. */

import { lstat, readlink } from 'node:fs/promises';
import { join } from 'node:path';

export interface SystemPlace {
  readonly path: string;
  /** Absent: the place itself is mounted. */
  readonly link?: string;
}

/** Programs and libraries. On most systems all but the first are links into it. */
const programFolders = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'];

/**
 * SECURITY: chosen one by one. What programs need to find each other, and nothing that says who works on this machine, how it
 * is managed or whom it trusts with what. Private keys in them are readable by root alone, which nobody inside is.
 */
const configuration = [
  'alternatives',
  'bash.bashrc',
  'ca-certificates',
  'ca-certificates.conf',
  'crypto-policies',
  'debian_version',
  'fonts',
  'inputrc',
  'java-11-openjdk',
  'java-17-openjdk',
  'java-21-openjdk',
  'ld.so.cache',
  'ld.so.conf',
  'ld.so.conf.d',
  'locale.alias',
  'localtime',
  'magic',
  'mime.types',
  'nsswitch.conf',
  'os-release',
  'perl',
  'pki',
  'profile',
  'protocols',
  'python3',
  'services',
  'shells',
  'ssl',
  'terminfo',
  'timezone',
].map((name) => join('/etc', name));

/** As a container engine masks them. */
const maskedKernelFiles = [
  '/proc/kcore',
  '/proc/keys',
  '/proc/latency_stats',
  '/proc/timer_list',
  '/proc/timer_stats',
  '/proc/sched_debug',
  '/proc/sysrq-trigger',
  '/proc/kallsyms',
  '/proc/kmsg',
];
const maskedKernelFolders = [
  '/proc/acpi',
  '/proc/asound',
  '/proc/scsi',
  '/proc/bus',
  '/proc/irq',
  '/proc/fs',
];

export interface SystemPlaces {
  readonly programs: readonly SystemPlace[];
  /** Of /etc. */
  readonly configuration: readonly string[];
  readonly maskedFiles: readonly string[];
  readonly maskedFolders: readonly string[];
}

export async function lookAtSystem(): Promise<SystemPlaces> {
  const [programs, files, maskedFiles, maskedFolders] = await Promise.all([
    present(programFolders),
    present(configuration),
    present(maskedKernelFiles),
    present(maskedKernelFolders),
  ]);
  return {
    programs,
    configuration: paths(files),
    maskedFiles: paths(maskedFiles),
    maskedFolders: paths(maskedFolders),
  };
}

const paths = (places: readonly SystemPlace[]): readonly string[] => places.map(({ path }) => path);

async function present(wanted: readonly string[]): Promise<readonly SystemPlace[]> {
  const found = await Promise.all(
    wanted.map(async (path): Promise<SystemPlace | undefined> => {
      const facts = await lstat(path).catch(() => undefined);
      if (facts === undefined) return undefined;
      return facts.isSymbolicLink() ? { path, link: await readlink(path) } : { path };
    }),
  );
  return found.filter((place) => place !== undefined);
}

/** Nothing can be put there: bubblewrap would have to make a place for it in the host's own folder. */
export const isOfSystem = (path: string): boolean =>
  [...programFolders, '/proc', '/dev', '/sys'].some(
    (folder) => path === folder || path.startsWith(`${folder}/`),
  );
