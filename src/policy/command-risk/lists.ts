/** What a person may change: which commands never run on the host, which paths nothing touches there, what is refused. */

import { credentialsInHome } from '../host-places.ts';
import { type CommandPattern, parseCommandPattern } from './command-pattern.ts';
import { indexRestricted, type RestrictedPaths } from './restricted.ts';
import { secretNames } from './secret-names.ts';

export interface RiskLists {
  /** Commands that go to the sandbox, and ask. In the syntax of `command-pattern.ts`. */
  readonly forbidden: readonly string[];
  readonly restrictedPaths: readonly string[];
  /** Commands that are refused. Empty unless the user says so. */
  readonly blocked: readonly string[];
  /** More programs that only read. */
  readonly safeTools: readonly string[];
}

/** Below a home, besides what no sandbox may see (`host-places.ts`): keys and tokens of programs, histories, wallets. */
const homeSecrets = [
  '.bash_history .zsh_history .zhistory .histfile .python_history .node_repl_history .psql_history .mysql_history',
  '.rediscli_history .sqlite_history .local/share/fish/fish_history .lesshst .viminfo .Xauthority .ICEauthority',
  '.claude.json .gemini/oauth_creds.json .local/share/opencode/auth.json .config/github-copilot .qwen/oauth_creds.json',
  '.config/heroku .fly .config/fly .databrickscfg .snowflake .config/hcloud .wrangler .config/.wrangler .vercel',
  '.config/netlify .netlify .config/linode-cli .cloudflared .pulumi .config/pulumi .aliyun .bluemix .tsh .minikube',
  '.composer/auth.json .config/composer/auth.json .nuget/NuGet .config/pip/pip.conf .pip/pip.conf .condarc .kaggle',
  '.huggingface .cache/huggingface/token .config/age .age .ngrok2 .config/ngrok .mc .rclone.conf .passwd-s3fs',
  '.smbcredentials .fetchmailrc .msmtprc .muttrc .authinfo .authinfo.gpg .purple .config/discord .config/Slack',
  '.config/Signal .putty .config/filezilla .filezilla .remmina .local/share/remmina .vnc .config/tigervnc',
  '.local/share/atuin/key .supabase .railway .config/stripe .config/configstore .expo .influxdbv2 .sbt .anthropic .openai',
  '.vault_pass.txt .chef .puppetlabs .electrum .bitcoin .ethereum .subversion/auth',
].flatMap((line) => line.split(' '));

export const defaultLists: RiskLists = {
  forbidden: ['rm -rf /', 'mkfs', 'mkfs.*', 'dd of=/dev/*', 'format C:', 'del /f /s /q C:\\'],
  restrictedPaths: [
    '/root',
    ...'shadow shadow- gshadow gshadow- passwd sudoers sudoers.d ssh ssl/private kubernetes krb5.keytab wireguard openvpn mysql/debian.cnf NetworkManager/system-connections letsencrypt ppp wpa_supplicant postfix/sasl_passwd security/opasswd rancher gitlab cups exim4/passwd.client ipsec.secrets pki/tls/private ssl/key grafana/grafana.ini'
      .split(' ')
      .map((name) => `/etc/${name}`),
    ...'environ mem maps root cwd fd cmdline auxv stack map_files task'
      .split(' ')
      .map((name) => `/proc/*/${name}`),
    ...'/proc/kcore /proc/kmsg /dev/mem /dev/kmem /dev/port /dev/core /dev/sd* /dev/nvme* /dev/vd* /dev/dm-* /dev/disk /dev/mapper /run/secrets /var/run/secrets /var/lib/docker'.split(
      ' ',
    ),
    ...'/var/lib/kubelet /run/docker.sock /var/run/docker.sock /run/containerd /run/podman /run/user'.split(
      ' ',
    ),
    ...'/var/lib/rancher /run/credentials /var/backups /var/spool/cron /var/mail /var/spool/mail /sys/firmware /boot/grub'.split(
      ' ',
    ),
    ...credentialsInHome.map((path) => `~/${path}`),
    ...homeSecrets.map((path) => `~/${path}`),
    ...secretNames,
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
