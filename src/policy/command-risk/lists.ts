/** What a person may change: which commands never run on the host, which paths nothing touches there, what is refused. */

import { credentialsInHome } from '../host-places.ts';
import { type CommandPattern, parseCommandPattern } from './command-pattern.ts';
import { indexRestricted, type RestrictedPaths } from './restricted.ts';

export interface RiskLists {
  /** Commands that go to the sandbox, and ask. In the syntax of `command-pattern.ts`. */
  readonly forbidden: readonly string[];
  readonly restrictedPaths: readonly string[];
  /** Commands that are refused. Empty unless the user says so. */
  readonly blocked: readonly string[];
  /** More programs that only read. */
  readonly safeTools: readonly string[];
}

export const defaultLists: RiskLists = {
  forbidden: ['rm -rf /', 'mkfs', 'mkfs.*', 'dd of=/dev/*', 'format C:', 'del /f /s /q C:\\'],
  restrictedPaths: [
    '/root',
    ...'shadow shadow- gshadow gshadow- passwd sudoers sudoers.d ssh ssl/private kubernetes krb5.keytab'
      .split(' ')
      .map((name) => `/etc/${name}`),
    ...'environ mem maps root cwd fd cmdline auxv stack map_files task'
      .split(' ')
      .map((name) => `/proc/*/${name}`),
    ...'/proc/kcore /proc/kmsg /dev/mem /dev/kmem /dev/port /dev/sd* /dev/nvme* /dev/vd* /dev/dm-* /dev/disk /dev/mapper /run/secrets /var/run/secrets /var/lib/docker'.split(
      ' ',
    ),
    ...'/var/lib/kubelet /run/docker.sock /var/run/docker.sock /run/containerd /run/podman /run/user'.split(
      ' ',
    ),
    ...'/var/spool/cron /var/mail /var/spool/mail /sys/firmware /boot/grub'.split(' '),
    ...credentialsInHome.map((path) => `~/${path}`),
    ...'.bash_history .zsh_history .python_history .node_repl_history .psql_history .mysql_history .lesshst .viminfo'
      .split(' ')
      .map((name) => `~/${name}`),
    // Names that hold secrets in whatever folder they are.
    ...'.env .env.* id_rsa id_dsa id_ecdsa id_ed25519 .ssh .aws .gnupg .netrc .pgpass .git-credentials'.split(
      ' ',
    ),
    ...'.htpasswd .vault-token .pypirc'.split(' '),
    'C:\\Windows',
    'System32',
    'SysWOW64',
  ],
  blocked: [],
  safeTools: [],
};

/** The lists as they are compared with commands: read once, used for many. */
export interface ReadLists {
  readonly forbidden: readonly CommandPattern[];
  readonly blocked: readonly CommandPattern[];
  readonly restrictedPaths: RestrictedPaths;
  readonly safeTools: ReadonlySet<string>;
}

export function readLists(lists: RiskLists): ReadLists {
  const patterns = (entries: readonly string[]): readonly CommandPattern[] =>
    entries.map(parseCommandPattern).filter((pattern) => pattern !== undefined);
  return {
    forbidden: patterns(lists.forbidden),
    blocked: patterns(lists.blocked),
    restrictedPaths: indexRestricted(lists.restrictedPaths),
    safeTools: new Set(lists.safeTools),
  };
}
