/** The options that decide what a sandbox is, declared once for `run`, `create`, `explain` and `config`. */

import { type Command, Option } from '@commander-js/extra-typings';
import { collect, countValue, cpusValue, lifetimeValue, sizeValue } from './values.ts';

export interface BoxOptions {
  readonly image?: string;
  readonly name?: string;
  readonly label?: readonly string[];
  readonly env?: readonly string[];
  readonly envFile?: readonly string[];
  readonly mount?: readonly string[];
  readonly volume?: readonly string[];
  readonly copy?: readonly string[];
  readonly tool?: readonly string[];
  readonly workdir?: string;
  readonly user?: string;
  readonly memory?: number;
  readonly cpus?: number;
  readonly pidsLimit?: number;
  readonly pids?: number;
  readonly runtime?: string;
  readonly network?: string;
  readonly workspace?: string | true;
  readonly workspaceMode?: 'live' | 'readonly' | 'copy';
  readonly protect?: readonly string[];
  readonly dangerouslyUnprotected?: readonly string[];
  readonly profile?: 'standard' | 'strict';
  readonly idleTtl?: string;
  readonly maxLifetime?: string;
  readonly approve?: true;
}

export function withBoxOptions<Args extends unknown[]>(command: Command<Args>) {
  return command
    .option('--image <reference>', 'image to run in (default: the base image)')
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
      '--tool <name>',
      'folders of claude, codex, git, uv, npm or apt in your home; may be repeated',
      collect,
    )
    .option('-w, --workdir <path>', 'where commands start (default: the workspace, or the home folder)')
    .option('-u, --user <uid:gid>', 'user inside, never root')
    .option('-m, --memory <size>', 'memory limit (default: 4g)', sizeValue)
    .option('--cpus <number>', 'CPU limit (default: 2)', cpusValue)
    .option('--pids-limit <number>', 'limit of processes and threads (default: 512)', countValue)
    .addOption(new Option('--pids <number>').argParser(countValue).hideHelp())
    .option('--runtime <name>', "container runtime, such as runsc (default: the engine's)")
    .option('--network <none>', 'only none exists: a sandbox has no network card')
    .option('--workspace [folder]', 'share this folder, or the one named, as /workspace')
    .addOption(
      new Option(
        '--workspace-mode <mode>',
        'live: the folder itself; readonly: not writable; copy: a copy (default: live)',
      ).choices(['live', 'readonly', 'copy'] as const),
    )
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
    .option('--approve', 'approve what the sallyport.yaml of this folder asks for');
}
