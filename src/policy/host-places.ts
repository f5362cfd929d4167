/** The places of a host that no sandbox may see, as data. `forbidden-sources.ts` is the rule that reads it. */

/** Trees of the system. Homes inside them are an exception for project folders, unless `hasHomes` is absent. */
export interface SystemTree {
  readonly path: string;
  readonly hasHomes?: true;
}

const everywhere: readonly SystemTree[] = [
  { path: '/etc' },
  { path: '/proc' },
  { path: '/sys' },
  { path: '/boot' },
  { path: '/dev' },
  { path: '/run' },
  { path: '/var/run' },
  { path: '/var/lib/docker' },
  { path: '/var/lib/containerd' },
  { path: '/var/lib/containers' },
  { path: '/var/lib/sallyport' },
  { path: '/var', hasHomes: true },
  { path: '/root', hasHomes: true },
  { path: '/home', hasHomes: true },
];

const onMac: readonly SystemTree[] = [
  { path: '/System' },
  { path: '/Library' },
  { path: '/cores' },
  { path: '/private/etc' },
  { path: '/private/var/run' },
  { path: '/private/var/db' },
  { path: '/private/var', hasHomes: true },
  { path: '/Users', hasHomes: true },
];

export const systemTrees = (platform: string): readonly SystemTree[] =>
  platform === 'darwin' ? [...everywhere, ...onMac] : everywhere;

/** Programs of the host: to be read, never to be changed. */
export const programTrees = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/Applications'] as const;

/** Folders in which everybody's sockets and files lie. A folder below one of them is fine. */
export const sharedFolders = ['/tmp', '/private/tmp'] as const;
/** Sockets of agents and displays in the shared folders. */
export const sharedSockets = /^(\/private)?\/tmp\/(ssh-[^/]*|\.X11-unix|\.ICE-unix|\.font-unix)(\/|$)/;
/** What $TMPDIR is on macOS, per user; the equal of a folder in /tmp. */
export const macTemporary = /^\/private\/var\/folders\/[^/]+\/[^/]+\/T\/[^/]/;

export const engineSocketName = /^(docker|containerd|podman|crio|cri-dockerd|buildkitd)([.-][\w.-]*)?\.sock$/;
export const knownEngineSockets = [
  '/run/docker.sock',
  '/var/run/docker.sock',
  '/private/var/run/docker.sock',
  '/run/containerd/containerd.sock',
  '/run/podman/podman.sock',
  '/run/crio/crio.sock',
  '/run/sallyport/engine/docker.sock',
] as const;

/** Below a home: keys, tokens, logins, and the data of engines. */
export const credentialsInHome = [
  '.ssh',
  '.aws',
  '.azure',
  '.gnupg',
  '.kube',
  '.docker',
  '.oci',
  '.netrc',
  '.npmrc',
  '.yarnrc.yml',
  '.pypirc',
  '.pgpass',
  '.my.cnf',
  '.vault-token',
  '.git-credentials',
  '.password-store',
  '.terraform.d',
  '.terraformrc',
  '.boto',
  '.s3cfg',
  '.gem/credentials',
  '.cargo/credentials',
  '.cargo/credentials.toml',
  '.m2/settings.xml',
  '.m2/settings-security.xml',
  '.gradle/gradle.properties',
  '.claude/.credentials.json',
  '.codex/auth.json',
  '.config/gcloud',
  '.config/gh',
  '.config/glab-cli',
  '.config/hub',
  '.config/git/credentials',
  '.config/op',
  '.config/rclone',
  '.config/doctl',
  '.config/containers',
  '.config/sops',
  '.config/sallyport',
  '.config/google-chrome',
  '.config/chromium',
  '.config/BraveSoftware',
  '.config/microsoft-edge',
  '.config/vivaldi',
  '.config/opera',
  '.mozilla',
  '.thunderbird',
  '.local/share/keyrings',
  '.local/share/kwalletd',
  '.local/share/docker',
  '.local/share/containers',
  '.local/share/gnupg',
  '.var/app',
  'snap/firefox',
  'snap/chromium',
  '.colima',
  '.lima',
  '.orbstack',
  '.rd',
  'Library/Keychains',
  'Library/Cookies',
  'Library/Safari',
  'Library/Mail',
  'Library/Messages',
  'Library/Containers',
  'Library/Group Containers',
  'Library/Application Support',
] as const;

/** Below a home: what the host itself runs, so that writing to it is running code outside. */
export const startupInHome = [
  '.bashrc',
  '.bash_profile',
  '.bash_login',
  '.bash_logout',
  '.profile',
  '.zshrc',
  '.zshenv',
  '.zprofile',
  '.zlogin',
  '.xprofile',
  '.xinitrc',
  '.gitconfig',
  '.vimrc',
  '.emacs',
  '.local/bin',
  'bin',
  '.config/autostart',
  '.config/fish',
  '.config/git',
  '.config/nvim',
  '.config/systemd',
  '.config/environment.d',
  'Library/LaunchAgents',
] as const;
