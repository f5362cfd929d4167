/** The options that decide what a sandbox is, declared once for `run`, `create`, `explain` and `config`. */

import { type Command, Option } from '@commander-js/extra-typings';
import { type EngineName, engineNames } from '../../protocol/engine-environment.ts';
import { collect, countValue, cpusValue, lifetimeValue, sizeValue } from './values.ts';

export interface BoxOptions {
  readonly image?: string;
  readonly defaultImage?: string;
  readonly strictImage?: string;
  readonly name?: string;
  readonly label?: readonly string[];
  readonly env?: readonly string[];
  readonly envFile?: readonly string[];
  readonly mount?: readonly string[];
  readonly volume?: readonly string[];
  readonly copy?: readonly string[];
  readonly tool?: readonly string[];
  readonly publish?: readonly string[];
  readonly workdir?: string;
  readonly user?: string;
  readonly memory?: number;
  readonly cpus?: number;
  readonly pidsLimit?: number;
  readonly pids?: number;
  readonly disk?: number;
  readonly engine?: EngineName;
  readonly runtime?: string;
  readonly network?: string;
  readonly allow?: readonly string[];
  readonly secret?: readonly string[];
  readonly deny?: readonly string[];
  readonly preset?: readonly string[];
  readonly egress?: 'deny' | 'learn' | 'dangerously-allow-all';
  readonly upstream?: string;
  readonly upstreamSecret?: string;
  readonly workspace?: string | true;
  readonly workspaceMode?: 'live' | 'readonly' | 'copy';
  readonly branch?: string;
  readonly worktree?: true;
  readonly protect?: readonly string[];
  readonly dangerouslyUnprotected?: readonly string[];
  readonly profile?: 'standard' | 'strict';
  readonly idleTtl?: string;
  readonly maxLifetime?: string;
  readonly approve?: true;
}

/** `publish`: how it is called where -p means something else. */
export function withBoxOptions<Args extends unknown[]>(
  command: Command<Args>,
  { publish = '-p, --publish' }: { readonly publish?: '-p, --publish' | '--publish' } = {},
) {
  return command
    .option(
      '--image <reference>',
      'image to run in (default: of the Dockerfile.sallyport in the workspace, or the default image)',
    )
    .option(
      '--default-image <reference>',
      'image with the standard profile where nothing else names one (default: the base image)',
    )
    .option(
      '--strict-image <reference>',
      'image with the strict profile where nothing else names one (default: the base image)',
    )
    .option('--name <name>', 'name of the sandbox (default: by its workspace, or made up)')
    .option('--label <name=value>', 'label; may be repeated', collect)
    .option(
      '-e, --env <NAME=value>',
      'environment variable; may be repeated; nothing else is passed in',
      collect,
    )
    .option('--env-file <file>', 'file of NAME=value lines; may be repeated', collect)
    .option(
      '-v, --mount <SRC:TARGET[:ro|rw]>',
      'file or folder of this machine, read-only unless :rw',
      collect,
    )
    .addOption(new Option('--volume <SRC:TARGET[:ro|rw]>').argParser(collect).hideHelp())
    .option('--copy <SRC:TARGET>', 'copy of a file or folder of this machine; may be repeated', collect)
    .option(
      '--tool <name[:shared]>',
      'folders of claude, codex, git, uv, npm or apt in your home; :shared leaves what this machine executes writable; may be repeated',
      collect,
    )
    .option(
      `${publish} <[[IP:]HOST:]BOX>` as '-p, --publish <[[IP:]HOST:]BOX>',
      'port inside that this machine can reach, on its loopback; may be repeated',
      collect,
    )
    .option('-w, --workdir <path>', 'where commands start (default: the workspace, or the home folder)')
    .option('-u, --user <uid:gid>', 'user inside, never root')
    .option('-m, --memory <size>', 'memory limit (default: 4g)', sizeValue)
    .option('--cpus <number>', 'CPU limit (default: 2)', cpusValue)
    .option('--pids-limit <number>', 'limit of processes and threads (default: 512)', countValue)
    .addOption(new Option('--pids <number>').argParser(countValue).hideHelp())
    .option('--disk <size>', 'disk limit (default: 20g)', sizeValue)
    .addOption(new Option('--engine <name>', 'engine that makes it (default: auto)').choices(engineNames))
    .option('--runtime <name>', "container runtime, such as runsc, or strongest (default: the engine's)")
    .option('--network <none>', 'only none exists: a sandbox has no network card')
    .option('--secret <name>', 'secret that the gate puts into its requests; may be repeated', collect)
    .option('--allow <host[:port]>', 'host that it may reach, such as *.x.com; may be repeated', collect)
    .option('--deny <host[:port]>', 'host that it never reaches; may be repeated', collect)
    .option('--preset <name>', 'hosts by a name that `sally net presets` lists; may be repeated', collect)
    .addOption(
      new Option(
        '--egress <mode>',
        'deny: only what is allowed; learn: all that is public, recorded (default: deny)',
      ).choices(['deny', 'learn', 'dangerously-allow-all'] as const),
    )
    .option('--upstream <way>', 'direct, tor, http://host:port or socks5://host:port (default: direct)')
    .option('--upstream-secret <name>', 'the secret with user:password for that upstream')
    .option('--workspace [folder]', 'share this folder, or the one named, as /workspace')
    .addOption(
      new Option(
        '--workspace-mode <mode>',
        'live: the folder itself; readonly: not writable; copy: a copy (default: live)',
      ).choices(['live', 'readonly', 'copy'] as const),
    )
    .option(
      '--branch <name>',
      'work on a private clone of this branch of the repository; its commits come back',
    )
    .option('--worktree', 'with --branch: work live on a worktree of it, which is found or made')
    .option('--protect <path>', 'in a live workspace: read-only inside as well; may be repeated', collect)
    .option(
      '--dangerously-unprotected <path>',
      'in a live workspace: writable, although the host executes it, or all; may be repeated',
      collect,
    )
    .addOption(
      new Option('--profile <name>', 'how much is allowed (default: standard)').choices([
        'standard',
        'strict',
      ] as const),
    )
    .option(
      '--idle-ttl <duration>',
      'stop it after so long without use, or never (default: 30m)',
      lifetimeValue,
    )
    .option('--max-lifetime <duration>', 'stop it so long after its creation (default: never)', lifetimeValue)
    .option(
      '--approve',
      'approve what the sallyport.yaml and the Dockerfile.sallyport of this folder ask for',
    );
}
