/** Every field of a spec in words. `docs/spec.md` and the JSON Schema for editors are made from it; a test compares it with the schema. */

export interface SpecField {
  readonly field: string;
  readonly meaning: string;
  readonly absent: string;
  /** Of lists and maps. */
  readonly empty?: string;
  /** A valid value, as YAML in one line. */
  readonly example: string;
  /** In a project file it needs to be approved. */
  readonly approval: 'always' | 'never' | 'when raised';
}

type ServiceList = 'required_services' | 'optional_services';

/** The fields of one service, for both lists of them. */
function serviceFields(list: ServiceList): readonly SpecField[] {
  const isRequired = list === 'required_services';
  const field = (name: string, meaning: string, absent: string, example: string): SpecField => ({
    field: `${list}.${name}`,
    meaning,
    absent,
    example,
    approval: 'always',
  });
  return [
    {
      field: list,
      meaning: isRequired
        ? 'Containers beside the sandbox, such as a database, that must be healthy before it is ready. [docs/services.md](services.md) says more.'
        : 'The same, but the sandbox does not wait for them, and is ready without one that fails.',
      absent: 'none',
      empty: 'none, also not those of weaker sources',
      example: '[{ name: db, image: "postgres:16" }]',
      approval: 'always',
    },
    field(
      'name',
      'The host name by which it is found: a-z, 0-9 and "-". Once in both lists.',
      'an error',
      'db',
    ),
    field('image', 'Its image; pulled on first use.', 'an error', 'postgres:16'),
    {
      ...field('envs', 'Its environment variables.', "the image's own", '{ POSTGRES_PASSWORD: example }'),
      empty: "the image's own",
    },
    {
      ...field('command', "Instead of the image's command. A list.", "the image's own", '[redis-server]'),
      empty: 'an error',
    },
    field(
      'healthcheck',
      'How to tell that it works.',
      "the image's own; without one it is ready when it runs",
      '{ test: pg_isready }',
    ),
    field(
      'healthcheck.test',
      'A line of shell, or a list of program and arguments, that succeeds when it is healthy. `[NONE]`: no check.',
      'an error',
      'pg_isready',
    ),
    field('healthcheck.interval', 'How long from one check to the next.', '1s', '1s'),
    field('healthcheck.timeout', 'A check that takes longer has failed.', '5s', '5s'),
    field('healthcheck.retries', 'So many failures in a row are the end.', '30', '30'),
    field('healthcheck.start_period', 'Failures within this time do not count.', '0s', '10s'),
    {
      ...field('limits', 'What it may use at most.', '1g, 1 CPU, 256 processes', '{ memory: 2g }'),
      empty: 'the usual',
    },
    field('limits.memory', 'Memory, with /dev/shm.', '1g', '1g'),
    field('limits.cpus', 'Processors, also parts of one.', '1', '1'),
    field('limits.pids', 'Processes and threads.', '256', '256'),
    field('limits.nofile', 'Open files of each process.', 'what the engine gives', '65536'),
    field(
      'limits.disk',
      'Disk usage of its root and volumes. If a service exceeds it, the sandbox is stopped.',
      'that of the sandbox',
      '20g',
    ),
    {
      ...field(
        'post_start_on_primary',
        isRequired
          ? 'Commands that run in the sandbox when the service is healthy, at each start. One that fails is the end of the start.'
          : 'Not for optional services: an error.',
        'none',
        '[[npm, run, migrate]]',
      ),
      empty: 'none',
    },
  ];
}

export const specFields: readonly SpecField[] = [
  {
    field: 'image',
    meaning: 'The image that the sandbox is made of; pulled on first use.',
    absent:
      "the workspace's `Dockerfile.sallyport`, else the agent's image, else that of `images`, else the base image of Sallyport",
    example: 'debian:bookworm-slim',
    approval: 'always',
  },
  {
    field: 'build',
    meaning: "How the workspace's `Dockerfile.sallyport` is built, if it is.",
    absent: 'without arguments, with the network of the engine',
    empty: 'the same',
    example: '{ network: none }',
    approval: 'always',
  },
  {
    field: 'build.args',
    meaning: 'Values for its ARGs.',
    absent: 'the defaults that it has itself',
    empty: 'the same',
    example: '{ VERSION: "3" }',
    approval: 'always',
  },
  {
    field: 'build.network',
    meaning: '`default`: its commands have the network of the engine. `none`: they have none.',
    absent: '`default`',
    example: 'none',
    approval: 'always',
  },
  {
    field: 'agent',
    meaning: 'The agent whose image is used where no image is named and the workspace has no Dockerfile.',
    absent: 'the image of `images`',
    example: 'claude',
    approval: 'always',
  },
  {
    field: 'images',
    meaning:
      'Images of sandboxes whose spec names neither `image` nor `agent` and whose workspace has no `Dockerfile.sallyport`; pulled on first use. ' +
      'bubblewrap has no images and ignores them.',
    absent: 'the base image of Sallyport',
    empty: 'the base image of Sallyport',
    example: '{ default: "python:3.12-slim", strict: "alpine:latest" }',
    approval: 'always',
  },
  {
    field: 'images.default',
    meaning: 'The image with `profile: standard`.',
    absent: 'the base image of Sallyport',
    example: 'python:3.12-slim',
    approval: 'always',
  },
  {
    field: 'images.strict',
    meaning: 'The image with `profile: strict`.',
    absent: 'the base image of Sallyport',
    example: 'alpine:latest',
    approval: 'always',
  },
  {
    field: 'name',
    meaning: 'Its name: a-z, 0-9, ".", "_" and "-", 1 to 63 characters.',
    absent: 'by the workspace (folder name and a hash of its path), or made up',
    example: 'my-box',
    approval: 'always',
  },
  {
    field: 'workspace',
    meaning: 'A folder of the host inside the sandbox.',
    absent: 'nothing of the host is inside',
    example: '{ path: . }',
    approval: 'always',
  },
  {
    field: 'workspace.path',
    meaning:
      'The folder. Relative to the file that says it, else to the working folder; `~/` is your home. A link is followed.',
    absent: 'an error',
    example: '.',
    approval: 'always',
  },
  {
    field: 'workspace.target',
    meaning: 'Where it is inside.',
    absent: '`/workspace`',
    example: '/workspace',
    approval: 'always',
  },
  {
    field: 'workspace.mode',
    meaning:
      '`live`: the folder itself. `readonly`: the same, not writable. `copy`: a copy; the folder stays as it is. ' +
      '`clone`: a private clone of one branch of the repository ([agents-git.md](agents-git.md)).',
    absent: '`live`',
    example: 'live',
    approval: 'always',
  },
  {
    field: 'workspace.branch',
    meaning:
      'The branch that is cloned. Only with `mode: clone`, which needs it. Where there is none of the name it begins at HEAD, inside alone.',
    absent: 'an error with `mode: clone`',
    example: 'fix/login',
    approval: 'always',
  },
  {
    field: 'workspace.exclude_patterns',
    meaning: 'What is left out of a copy, in the syntax of `.gitignore`. Only with `mode: copy`.',
    absent: 'nothing is left out',
    empty: 'nothing is left out',
    example: '[node_modules/, "*.log"]',
    approval: 'always',
  },
  {
    field: 'workspace.exclude_from',
    meaning:
      'Files at its root that say what is left out, such as `.gitignore` and `.dockerignore`. Only with `mode: copy`.',
    absent: 'none',
    empty: 'none',
    example: '[.gitignore]',
    approval: 'always',
  },
  {
    field: 'workspace.protect',
    meaning:
      'More paths in the workspace that are read-only inside, in `live` mode, with what the host would execute, which always is. At most 100.',
    absent: 'none',
    empty: 'none',
    example: '[scripts/deploy]',
    approval: 'always',
  },
  {
    field: 'workspace.dangerously_unprotected',
    meaning:
      'What the host would execute and the sandbox may write to all the same, in `live` mode: names of the default set, or `all`.',
    absent: 'none',
    empty: 'none',
    example: '[.vscode]',
    approval: 'always',
  },
  {
    field: 'mounts',
    meaning: 'More files and folders of the host. At most 100.',
    absent: 'none',
    empty: 'none, also not those of weaker sources',
    example: '[{ source: ./data, target: /data }]',
    approval: 'always',
  },
  {
    field: 'mounts.source',
    meaning:
      'A file or a folder. Neither it nor a folder above it may be a link, but for links of root. Paths as for `workspace.path`.',
    absent: 'an error',
    example: './data',
    approval: 'always',
  },
  {
    field: 'mounts.target',
    meaning: 'Where it is inside: absolute, not inside or around another target.',
    absent: 'an error',
    example: '/data',
    approval: 'always',
  },
  {
    field: 'mounts.writable',
    meaning: 'Whether the sandbox may change it.',
    absent: '`false`',
    example: 'false',
    approval: 'always',
  },
  {
    field: 'copies',
    meaning:
      'Files and folders of the host that are copied in when it is made, and belong to its user. The host keeps its own. At most 100.',
    absent: 'none',
    empty: 'none, also not those of weaker sources',
    example: '[{ source: ./data, target: /data }]',
    approval: 'always',
  },
  {
    field: 'copies.source',
    meaning:
      'A file or a folder. Neither it nor a folder above it may be a link, but for links of root. Paths as for `workspace.path`.',
    absent: 'an error',
    example: './data',
    approval: 'always',
  },
  {
    field: 'copies.target',
    meaning: 'Where it is inside: absolute, not below `/tmp`, not inside or around another target.',
    absent: 'an error',
    example: '/data',
    approval: 'always',
  },
  {
    field: 'copies.exclude_patterns',
    meaning: 'What is left out, in the syntax of `.gitignore`.',
    absent: 'nothing is left out',
    empty: 'nothing is left out',
    example: '[node_modules/, "*.log"]',
    approval: 'always',
  },
  {
    field: 'copies.exclude_from',
    meaning:
      'Files at the root of the source that say what is left out, such as `.gitignore` and `.dockerignore`.',
    absent: 'none',
    empty: 'none',
    example: '[.gitignore]',
    approval: 'always',
  },
  {
    field: 'builtin_tools',
    meaning:
      'Tools whose folders of your home are inside: claude, codex, git, uv, npm, apt. With claude, codex and git your real credentials ' +
      'become visible inside. An entry is a name, or `{ name, mode }`: `mode: shared` also makes writable what the host executes from these ' +
      "folders, which otherwise is read-only inside or the sandbox's own ([builtin-tools.md](builtin-tools.md)).",
    absent: 'none',
    empty: 'none, also not those of weaker sources',
    example: '[npm]',
    approval: 'always',
  },
  {
    field: 'ports',
    meaning:
      'Ports inside that this machine can reach: `3000`, `8080:3000` or `127.0.0.1:8080:3000`, host first. Without an address on both ' +
      'loopback addresses; without a host port at one that is free. At most 100.',
    absent: 'none',
    empty: 'none, also not those of weaker sources',
    example: '["8080:3000"]',
    approval: 'always',
  },
  ...serviceFields('required_services'),
  ...serviceFields('optional_services'),
  {
    field: 'envs',
    meaning:
      'Variables for every command inside: at most 1000, 512 KiB together. Names that begin with SALLYPORT_ are refused. All others, ' +
      'also PATH and LD_PRELOAD, are your own affair: they change only what is inside. HOST_UID and HOST_GID are set to the numbers of the user ' +
      'who runs the daemon, unless named here; the strict profile has neither.',
    absent: "the image's own variables, HOST_UID and HOST_GID, and nothing of the host's environment",
    empty: 'none, also not those of weaker sources',
    example: '{ CI: "1" }',
    approval: 'never',
  },
  {
    field: 'labels',
    meaning: 'Labels of the container: at most 100. Those that begin with dev.sallyport. are refused.',
    absent: 'none',
    empty: 'none, also not those of weaker sources',
    example: '{ team: blue }',
    approval: 'never',
  },
  {
    field: 'limits',
    meaning: 'What it may use at most.',
    absent: 'the limits of its profile',
    empty: 'the limits of its profile',
    example: '{ memory: 4g, cpus: 2, pids: 512 }',
    approval: 'when raised',
  },
  {
    field: 'limits.memory',
    meaning: 'Memory, with all files in /tmp and /dev/shm. At least 16m; a bare number counts bytes.',
    absent: '4g (strict: 256m)',
    example: '4g',
    approval: 'when raised',
  },
  {
    field: 'limits.cpus',
    meaning: 'Processors, also parts of one: 0.01 to 1024.',
    absent: '2 (strict: 0.5)',
    example: '2',
    approval: 'when raised',
  },
  {
    field: 'limits.pids',
    meaning: 'Processes and threads.',
    absent: '512 (strict: 100)',
    example: '512',
    approval: 'when raised',
  },
  {
    field: 'limits.nofile',
    meaning: 'Open files of each process.',
    absent: '65536',
    example: '65536',
    approval: 'when raised',
  },
  {
    field: 'limits.disk',
    meaning:
      'Disk usage of its root and the volumes of its image. At least 64m; a bare number counts bytes. Live workspaces and mounts of the ' +
      'host do not count. [docs/disk.md](disk.md) describes the enforcement.',
    absent: '20g',
    example: '20g',
    approval: 'when raised',
  },
  {
    field: 'profile',
    meaning:
      '`standard`, or `strict` for a command that nobody trusts: its limits can only be lowered, its root is read-only, it runs as ' +
      'nobody, and nothing of the host is writable, so a workspace can only be `readonly` (a copy would need a place to be written to).',
    absent: '`standard`',
    example: 'standard',
    approval: 'always',
  },
  {
    field: 'engine',
    meaning:
      'Which engine makes it: `docker`, `bubblewrap` (see [bubblewrap.md](bubblewrap.md)) or `auto`. `auto` never takes one that ' +
      'isolates less than a container engine unless you have chosen it on this machine.',
    absent: '`auto`',
    example: 'docker',
    approval: 'always',
  },
  {
    field: 'runtime',
    meaning:
      'The container runtime, such as runsc. The engine must know it. `strongest` takes the first of these that the engine lists and that ' +
      'passes a check: kata or krun (never tried on hardware), runsc, runc. [engines.md](engines.md#runtimes) says more.',
    absent: "the engine's default",
    example: 'runsc',
    approval: 'always',
  },
  {
    field: 'user',
    meaning: '`uid:gid` in numbers, neither of them 0.',
    absent:
      "the host's user where a folder of the host is writable inside, else a uid that no other sandbox has",
    example: '"1000:1000"',
    approval: 'always',
  },
  {
    field: 'network',
    meaning: 'Only `none` exists: a sandbox has no network card.',
    absent: '`none`',
    example: 'none',
    approval: 'never',
  },
  {
    field: 'egress',
    meaning:
      'What it may reach, through the gate. `docs/network.md` is the reference. Not with `profile: strict`.',
    absent: 'nothing',
    empty: 'nothing, and the gate says so to whoever asks',
    example: '{ allow: [example.com] }',
    approval: 'always',
  },
  {
    field: 'egress.mode',
    meaning:
      '`deny`: only what is allowed. `learn` and `dangerously-allow-all`: every public host that no rule denies, recorded.',
    absent: '`deny`',
    example: 'deny',
    approval: 'always',
  },
  {
    field: 'egress.allow',
    meaning:
      'Rules: `x.com`, `*.x.com` (one label more), `**.x.com` (any number), `10.1.0.0/16`, each with `:port`, `:*` or `:port/tcp`; or the ' +
      'parts of one. Ports are 80 and 443 unless a rule says others. Joined with those of weaker sources.',
    absent: 'none',
    empty: 'none, also not those of weaker sources',
    example: '[registry.npmjs.org, "db.example.com:5432/tcp"]',
    approval: 'always',
  },
  {
    field: 'egress.deny',
    meaning: 'Rules that win over every allow. Joined with those of weaker sources, and never taken away.',
    absent: 'none',
    empty: 'none',
    example: '[telemetry.example.com]',
    approval: 'always',
  },
  {
    field: 'egress.presets',
    meaning: 'Lists of rules by name: npm, pypi, debian, github, crates, go, anthropic, openai.',
    absent: 'none',
    empty: 'none, also not those of weaker sources',
    example: '[npm]',
    approval: 'always',
  },
  {
    field: 'egress.credentials',
    meaning: 'Names of your secrets that the gate puts into requests to the hosts that they are bound to.',
    absent: 'none',
    empty: 'none, also not those of weaker sources',
    example: '[ci]',
    approval: 'always',
  },
  {
    field: 'egress.upstream',
    meaning:
      'By which way everything leaves: `direct`, `http://host:port`, `socks5://host:port`, `tor` (a Tor client that the daemon starts) or `tor://host:port` (one that runs).',
    absent: '`direct`',
    example: 'direct',
    approval: 'always',
  },
  {
    field: 'egress.upstream_secret',
    meaning:
      'The secret that holds `user:password` for the upstream. It must be bound to the host and port of the upstream and to the header `proxy-authorization`.',
    absent: 'no login',
    example: 'corp',
    approval: 'always',
  },
  {
    field: 'workdir',
    meaning: 'Where commands start.',
    absent: 'the workspace, else the home folder',
    example: '/workspace',
    approval: 'never',
  },
  {
    field: 'command',
    meaning: 'Runs as the exec `main` as soon as the sandbox is ready. A list: program and arguments.',
    absent: 'nothing runs by itself',
    empty: 'an error',
    example: '[npm, start]',
    approval: 'always',
  },
  {
    field: 'idle_ttl',
    meaning: 'Stopped after this long without an exec, a tunnel or a call: 30s, 15m, 1h30m, or `never`.',
    absent: '30m',
    example: '30m',
    approval: 'never',
  },
  {
    field: 'max_lifetime',
    meaning: 'Stopped this long after its creation, whatever runs; or `never`.',
    absent: '`never`',
    example: '8h',
    approval: 'never',
  },
];
