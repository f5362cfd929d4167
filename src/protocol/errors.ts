/**
 * The error registry: every failure that Sallyport reports is one of these codes.
 *
 * A code is stable and is what programs match on; never match on message text. Its kind decides the HTTP status and
 * the exit code, its advice says what to do next. `docs/errors.md` is generated from this table.
 */

export type ErrorKind =
  | 'invalid'
  | 'not_found'
  | 'conflict'
  | 'permission'
  | 'unavailable'
  | 'timeout'
  | 'cancelled'
  | 'unsupported'
  | 'exhausted'
  | 'internal';

interface ErrorDefinition {
  readonly kind: ErrorKind;
  readonly summary: string;
  readonly advice: string;
}

export const errorRegistry = {
  engine_unreachable: {
    kind: 'unavailable',
    summary: 'No container engine answered.',
    advice: 'Start your engine, or run `sally setup` to find, start or install one.',
  },
  engine_permission_denied: {
    kind: 'permission',
    summary: "The engine's socket exists but may not be opened by this user.",
    advice: 'Join the group that owns the socket (`sudo usermod -aG docker $USER`), then log in again.',
  },
  engine_endpoint_invalid: {
    kind: 'invalid',
    summary: 'The engine address (DOCKER_HOST or a docker context) cannot be used.',
    advice:
      'Use unix:///path, tcp://host:port or ssh://user@host; `unset DOCKER_HOST` to look for a local engine.',
  },
  engine_too_old: {
    kind: 'unsupported',
    summary: 'The engine speaks an API older than 1.41 (Docker Engine 20.10).',
    advice: 'Upgrade the engine to Docker Engine 20.10 or newer.',
  },
  engine_timeout: {
    kind: 'timeout',
    summary: 'The engine accepted a call and did not answer within its deadline.',
    advice: 'The engine may be stuck: restart it, then run `sally doctor`.',
  },
  engine_not_found: {
    kind: 'not_found',
    summary: 'The engine knows no such container, volume, network or path.',
    advice: 'It may have been removed by hand; `docker ps -a` shows what the engine has.',
  },
  engine_conflict: {
    kind: 'conflict',
    summary: 'The engine refused because of the state or the name of an existing object.',
    advice: 'Another object has this name or is in use; remove it or choose another name.',
  },
  engine_protocol: {
    kind: 'internal',
    summary: 'The engine answered with something that is not the Docker Engine API.',
    advice: 'Check that the address belongs to a Docker-compatible engine (`sally doctor`).',
  },
  engine_failed: {
    kind: 'internal',
    summary: 'The engine reported an error of its own.',
    advice: "Read the engine's message above; its log has more.",
  },
  engine_start_failed: {
    kind: 'unavailable',
    summary: 'An installed engine was started but did not become ready in time.',
    advice: "Read the engine's log named above, or start the engine by hand and try again.",
  },
  engine_unsupported: {
    kind: 'unsupported',
    summary: 'This engine cannot do what was asked for, and nothing was made.',
    advice: 'Leave it out, or use another engine (`--engine docker`).',
  },
  engine_not_chosen: {
    kind: 'permission',
    summary: 'Only an engine that isolates less than a container engine is here, and nobody has chosen it.',
    advice: 'Choose it with `--engine bubblewrap` or SALLYPORT_ENGINE=bubblewrap, or start Docker.',
  },
  image_missing: {
    kind: 'not_found',
    summary: 'The image is not on this engine.',
    advice: 'Run `sally image bootstrap` for the default image, or pull the image by its name.',
  },
  image_pull_failed: {
    kind: 'unavailable',
    summary: 'The registry did not give the image.',
    advice: 'Check the name and the network; `sally image bootstrap` makes a base image without a registry.',
  },
  image_build_failed: {
    kind: 'internal',
    summary: 'An image could not be built.',
    advice: 'Read the end of the build output above.',
  },
  build_cache_changed: {
    kind: 'conflict',
    summary: "An image of the builder's cache was removed while the builder looked at it.",
    advice: 'Try again; a build with `--rebuild` does not use the cache.',
  },
  dockerfile_invalid: {
    kind: 'invalid',
    summary: "A project's Dockerfile or a file of its build context cannot be used.",
    advice: 'Correct the line or the file that the message names; docs/images.md says what can be built.',
  },
  image_in_use: {
    kind: 'conflict',
    summary: 'An image is needed by a sandbox or by another image.',
    advice: 'Remove the sandboxes that the message names first (`sally rm`).',
  },
  image_unprovisioned: {
    kind: 'unavailable',
    summary: 'An image of ours lacks its marker or a program that it promises, and could not be repaired.',
    advice: 'Make it anew: `sally provision <template> --rebuild`.',
  },
  provision_refused: {
    kind: 'conflict',
    summary: 'A sandbox that ran something, or holds something of its user, cannot become the base image.',
    advice:
      'Create one that is given nothing and runs nothing: `sally create --image <image>`, then provision that.',
  },
  template_unknown: {
    kind: 'invalid',
    summary: 'There is no image template of this name.',
    advice: 'Use one of base, claude, codex, opencode, coding, browser and data.',
  },
  npm_failed: {
    kind: 'unavailable',
    summary: "The npm packages of an image could not be fetched with this machine's npm.",
    advice: 'Check that npm is installed and reaches its registry (`npm ping`), then try again.',
  },
  setup_refused: {
    kind: 'permission',
    summary: 'Something must be installed and nobody agreed to it.',
    advice: 'Run `sally setup --yes` to agree, or install Docker Engine yourself.',
  },
  setup_impossible: {
    kind: 'unavailable',
    summary: 'This machine has no engine and Sallyport cannot install one here.',
    advice: 'Install Docker Engine, Docker Desktop, OrbStack, colima or Podman, then run `sally setup`.',
  },
  setup_failed: {
    kind: 'internal',
    summary: 'Installing or starting a part of the system failed.',
    advice: 'Read the output above; `sally doctor` shows what is there.',
  },
  disk_full: {
    kind: 'exhausted',
    summary: 'There is not enough disk space.',
    advice: 'Free some space (`docker system df` shows what the engine uses), then try again.',
  },
  disk_limit_exceeded: {
    kind: 'exhausted',
    summary:
      'A sandbox exceeded its disk limit, or grew most while the disk ran low. It was stopped; nothing was removed.',
    advice:
      'Free space with `sally start --clean-up <name>` and `sally shell <name>`, or raise the limit: `sally start --disk 40g <name>`.',
  },
  porter_missing: {
    kind: 'not_found',
    summary: 'No porter binary for the architecture of this engine.',
    advice: 'Run `npm run build` in a checkout, or reinstall the package.',
  },
  porter_corrupt: {
    kind: 'internal',
    summary: 'The porter that the engine would run is not the one that was put there.',
    advice: 'Remove the volume named above; it is made again on the next run.',
  },
  porter_protocol: {
    kind: 'internal',
    summary: 'The sandbox sent something that the porter protocol does not allow.',
    advice: 'The sandbox is no longer trusted and was stopped; create it again.',
  },
  porter_version: {
    kind: 'unsupported',
    summary: 'The sandbox was made by another version and speaks another porter protocol.',
    advice: 'Create the sandbox again with this version.',
  },
  porter_gone: {
    kind: 'unavailable',
    summary: 'The connection to the sandbox ended before the answer came.',
    advice: 'The sandbox may have been stopped or run out of memory; run the command again.',
  },
  porter_superseded: {
    kind: 'conflict',
    summary: 'Another daemon has taken over this sandbox.',
    advice: 'Use the daemon that holds it; `sally setup --status` and the process list show which ones run.',
  },
  state_unsafe: {
    kind: 'permission',
    summary: 'The state folder belongs to another user, or others may look into it.',
    advice: 'Make it yours alone (`chmod 700`, `chown`), or choose another with SALLYPORT_STATE_DIR.',
  },
  state_failed: {
    kind: 'internal',
    summary: 'A file of the state folder could not be read or written.',
    advice: 'Check the disk and the permissions of the file named above.',
  },
  events_gone: {
    kind: 'not_found',
    summary: 'Events that were asked for are no longer kept.',
    advice: 'Read the present state, which carries a sequence number, and follow the events from there.',
  },
  events_ahead: {
    kind: 'invalid',
    summary: 'No event has this sequence number yet.',
    advice: 'Follow from a number that this daemon gave out; it may have lost its state folder since.',
  },
  output_lost: {
    kind: 'internal',
    summary: 'Output of a command could not be stored, so the command was killed.',
    advice: 'Free disk space where Sallyport keeps its state, then run the command again.',
  },
  exec_start_failed: {
    kind: 'invalid',
    summary: 'The command could not be started inside the sandbox.',
    advice: 'Check that the program exists in the image and may be executed.',
  },
  exec_invalid: {
    kind: 'invalid',
    summary: 'A command, its environment or its working directory is nothing that a program can be given.',
    advice: 'Leave out NUL characters, and pass what is larger than 1 MB by a file or by standard input.',
  },
  runtime_missing: {
    kind: 'unsupported',
    summary: 'The engine has no such container runtime.',
    advice: 'Choose one that `sally doctor` lists, or add it to the engine.',
  },
  services_unsupported: {
    kind: 'unsupported',
    summary: 'This engine or this runtime cannot give a sandbox services.',
    advice: 'Use Docker Engine with its default runtime, or leave the services out.',
  },
  service_failed: {
    kind: 'unavailable',
    summary: 'A required service ended or did not become healthy, so the sandbox was not made.',
    advice:
      'Read the output above; give the health check more `retries` or a `start_period` if it needs time.',
  },
  service_hook_failed: {
    kind: 'invalid',
    summary: 'A command of `post_start_on_primary` failed, so the sandbox was not made.',
    advice: 'Read its output above; it runs in the sandbox at each start.',
  },
  service_not_found: {
    kind: 'not_found',
    summary: 'The sandbox has no such service.',
    advice: '`sally inspect` shows the services of a sandbox.',
  },
  port_unavailable: {
    kind: 'conflict',
    summary: 'A port of this machine cannot be listened on.',
    advice: 'Choose another one, or leave the host port out to get one that is free.',
  },
  preview_not_found: {
    kind: 'not_found',
    summary: 'The sandbox has no such preview.',
    advice: '`sally open --ls` shows those that there are.',
  },
  port_not_published: {
    kind: 'not_found',
    summary: 'The sandbox does not publish this port.',
    advice: '`sally ports` shows what it publishes; ports are named by their number on this machine.',
  },
  browser_failed: {
    kind: 'unavailable',
    summary: 'The browser of a sandbox did not start, or does not listen.',
    advice:
      'The sandbox needs an image with Chromium: `sally provision browser` makes one, `--image sallyport-browser` uses it.',
  },
  subnets_exhausted: {
    kind: 'exhausted',
    summary: 'No subnet is left for the network of a sandbox.',
    advice: 'Remove sandboxes with services that are not needed (`sally ls`, `sally rm`).',
  },
  refused_by_policy: {
    kind: 'invalid',
    summary: 'What was asked for is not allowed, and nothing was made.',
    advice: 'Ask for less, as the message says.',
  },
  copy_changed: {
    kind: 'conflict',
    summary: 'A file changed while it was copied into a sandbox.',
    advice: 'Try again when nothing writes to it, or leave it out with `exclude_patterns`.',
  },
  copy_too_large: {
    kind: 'exhausted',
    summary: 'Something that is to be copied is larger, or has larger holes, than what is copied.',
    advice: 'Remove it or make it smaller, or leave it out with `exclude_patterns`.',
  },
  copy_unreadable: {
    kind: 'permission',
    summary: 'Something that is to be copied into a sandbox cannot be read.',
    advice: 'Make it readable for you, or leave it out with `exclude_patterns`.',
  },
  sandbox_not_found: {
    kind: 'not_found',
    summary: 'There is no sandbox of this name or id.',
    advice: '`sally ls` shows those that there are.',
  },
  sandbox_ambiguous: {
    kind: 'conflict',
    summary: 'Several engines have a sandbox of this name, and the engine in use has none.',
    advice: 'Use the id of the sandbox, or choose the engine with DOCKER_HOST or SALLYPORT_ENGINE.',
  },
  sandbox_exists: {
    kind: 'conflict',
    summary: 'A sandbox of this name is there already.',
    advice: 'Choose another name, or remove the other one first: `sally rm <name>`.',
  },
  sandbox_state: {
    kind: 'conflict',
    summary: 'The sandbox is in a state in which this cannot be done.',
    advice: '`sally inspect <name>` shows its state and the reason.',
  },
  sandbox_failed: {
    kind: 'internal',
    summary: 'The sandbox could not be made or started.',
    advice: 'What was made on the way is removed; read the reason above and try again.',
  },
  sandbox_changed: {
    kind: 'conflict',
    summary: 'The sandbox holds changes that were not brought back.',
    advice:
      'Look at them with `sally diff`, bring them back with `sally apply`, or remove it with `--force`.',
  },
  workspace_not_cloned: {
    kind: 'conflict',
    summary: 'The sandbox does not work on a private clone, so it has no commits to bring back.',
    advice:
      '`sally diff` and `sally apply` are for a copied workspace; with a live one git shows on the host what changed.',
  },
  workspace_not_copied: {
    kind: 'conflict',
    summary: 'The sandbox has no copy of a folder, so there is nothing to compare or to bring back.',
    advice: 'In live mode git shows on the host what changed.',
  },
  workspace_too_large: {
    kind: 'conflict',
    summary: 'More paths of a copied workspace changed than are compared.',
    advice:
      'Remove what is not needed inside, or copy single folders out with `sally cp`; `sally rm --force` removes the sandbox with its changes.',
  },
  base_not_kept: {
    kind: 'not_found',
    summary: 'The content of a file as it was copied in is not kept.',
    advice: 'Files of more than 8 MiB, and what is beyond 512 MiB in all, are known by their hash alone.',
  },
  apply_failed: {
    kind: 'unavailable',
    summary: 'A change of a sandbox could not be written to this machine.',
    advice: 'Mend what the message names and call it again: what is done is found as done.',
  },
  git_failed: {
    kind: 'conflict',
    summary: 'Git could not do its part on this machine.',
    advice: 'Read what git says above; `sally apply --patch` and `--to` need no repository.',
  },
  repository_unfit: {
    kind: 'invalid',
    summary: 'The folder, or its branch, cannot be cloned or have a worktree.',
    advice: 'Mend what the message names, or work on the folder itself (`--workspace`) or on a copy.',
  },
  commits_refused: {
    kind: 'conflict',
    summary: 'The commits that a sandbox made were not taken: they are broken, too large, or made to harm.',
    advice:
      '`sally diff` shows what changed, `sally cp` brings single files; nothing of the repository was touched.',
  },
  changed_meanwhile: {
    kind: 'conflict',
    summary: 'A path changed while its change was brought back.',
    advice: 'Call it again: what is done is found as done.',
  },
  isolation_missing: {
    kind: 'unsupported',
    summary: 'The engine did not do what it was asked: read back from inside, something is not in force.',
    advice: 'The sandbox was not used. `sally doctor` shows what this engine enforces.',
  },
  sandbox_limit: {
    kind: 'exhausted',
    summary: 'There are as many sandboxes as there may be.',
    advice: 'Remove some first: `sally ls`, then `sally rm <name>`.',
  },
  daemon_stopping: {
    kind: 'unavailable',
    summary: 'The daemon is about to stop and takes nothing new.',
    advice: 'Ask again; the next call starts a new daemon.',
  },
  exec_not_found: {
    kind: 'not_found',
    summary: 'The sandbox knows no such command.',
    advice: '`sally logs --list <name>` shows those that it ran.',
  },
  exec_lost: {
    kind: 'unavailable',
    summary: 'The sandbox ended while the command ran, so nobody knows how it would have ended.',
    advice: 'Its output up to that moment is in `sally logs`; run it again.',
  },
  exec_not_sent: {
    kind: 'unavailable',
    summary: 'The daemon ended before it had sent the command to the sandbox: it never ran.',
    advice: 'Run it again.',
  },
  spec_invalid: {
    kind: 'invalid',
    summary: 'What was asked for does not fit the schema, and nothing was made.',
    advice: 'Correct the fields that the message names; docs/spec.md describes each of them.',
  },
  config_invalid: {
    kind: 'invalid',
    summary: 'A configuration file or an environment variable cannot be used.',
    advice: 'Correct what the message names; docs/config.md says what may be there.',
  },
  project_not_approved: {
    kind: 'permission',
    summary:
      'The sallyport.yaml or the Dockerfile of this folder asks for something that nobody has approved.',
    advice:
      'Read the file, then approve it: run in a terminal, pass `--approve`, or set SALLYPORT_APPROVE_PROJECT=1.',
  },
  tunnel_failed: {
    kind: 'unavailable',
    summary: 'Nothing inside the sandbox took the connection.',
    advice:
      'Check that the program inside listens at this address and port, and has not too many connections.',
  },
  tunnel_reset: {
    kind: 'unavailable',
    summary: 'A connection into or out of the sandbox was reset.',
    advice: 'The program at the other end dropped it; connect again.',
  },
  listen_failed: {
    kind: 'conflict',
    summary: 'The sandbox could not listen at this address.',
    advice: 'Something inside may use it already, or it is no address of the sandbox; choose another.',
  },
  file_not_found: {
    kind: 'not_found',
    summary: 'There is no such file or directory in the sandbox.',
    advice: 'Check the path; list the directory above it to see what is there.',
  },
  file_denied: {
    kind: 'permission',
    summary: "The sandbox's user may not do this with the file.",
    advice: 'Use a path that the sandbox user may write to, such as the workspace or /tmp.',
  },
  file_conflict: {
    kind: 'conflict',
    summary: 'What is there already stands in the way of the file operation.',
    advice: 'Remove or rename what is there, or allow it to be replaced.',
  },
  file_invalid: {
    kind: 'invalid',
    summary: 'The file operation does not fit what the path names.',
    advice: 'Only regular files are read and written; use an absolute path of the right kind.',
  },
  file_no_space: {
    kind: 'exhausted',
    summary: 'The sandbox has no space, or too little of something else, for the file operation.',
    advice: 'Remove files inside the sandbox, or give it larger limits.',
  },
  file_failed: {
    kind: 'internal',
    summary: 'A file operation inside the sandbox failed.',
    advice: 'Read the reason above; try again if the file was in use.',
  },
  request_invalid: {
    kind: 'invalid',
    summary: 'A request to the daemon is not what its route takes.',
    advice: 'Correct the field that the message names; `/openapi.json` says what each route takes.',
  },
  request_too_large: {
    kind: 'invalid',
    summary: 'The body of a request is larger than the daemon reads at once.',
    advice: 'Send large content by the files routes, which take any size.',
  },
  request_type: {
    kind: 'invalid',
    summary: 'The body of a request has another content type than its route takes.',
    advice: 'Send JSON as `content-type: application/json`.',
  },
  route_unknown: {
    kind: 'not_found',
    summary: 'The daemon has no such route.',
    advice: '`/openapi.json` lists the routes; a newer client may need a newer daemon.',
  },
  method_unknown: {
    kind: 'invalid',
    summary: 'The route exists, but not with this method.',
    advice: '`/openapi.json` lists the methods of each route.',
  },
  unauthenticated: {
    kind: 'permission',
    summary: 'The daemon was asked over TCP without its token.',
    advice: 'Send `authorization: Bearer <token>` with the token from the file `token` in the state folder.',
  },
  origin_refused: {
    kind: 'permission',
    summary: 'The request came from a web page, or by a name that is not the address of this machine.',
    advice: 'Use an address or localhost in the URL, and no page of another origin.',
  },
  daemon_running: {
    kind: 'conflict',
    summary: 'Another daemon uses this state folder already.',
    advice: 'Use that one, or choose another folder with SALLYPORT_STATE_DIR.',
  },
  daemon_unreachable: {
    kind: 'unavailable',
    summary: 'No daemon answers, and none was to be started.',
    advice: 'Run `sally daemon start`.',
  },
  daemon_start_failed: {
    kind: 'unavailable',
    summary: 'The daemon did not start.',
    advice: 'Read the reason above; `daemon.log` in the state folder has more.',
  },
  daemon_gone: {
    kind: 'unavailable',
    summary: 'The daemon went away before it answered.',
    advice: 'What was asked for may have been done or not: look before you repeat it.',
  },
  daemon_outdated: {
    kind: 'conflict',
    summary: 'The daemon is older than its client.',
    advice: 'Restart it with `sally daemon stop --keep`; sandboxes go on running.',
  },
  client_outdated: {
    kind: 'conflict',
    summary: 'The daemon is newer than its client.',
    advice: 'Upgrade the client, or stop the daemon with `sally daemon stop --keep` to use this version.',
  },
  daemon_engine_differs: {
    kind: 'conflict',
    summary:
      'The daemon works with another engine than the one that is asked for, or that holds the sandbox.',
    advice:
      'Call the daemon of that engine: choose it with `--engine`, SALLYPORT_ENGINE, DOCKER_HOST or DOCKER_CONTEXT.',
  },
  socket_path_too_long: {
    kind: 'invalid',
    summary: "The path of the daemon's socket is longer than the system allows.",
    advice: 'Set SALLYPORT_STATE_DIR to a folder with a shorter path.',
  },
  listen_refused: {
    kind: 'invalid',
    summary: 'The daemon was asked to listen where it does not.',
    advice: 'Listen on 127.0.0.1 or [::1]; `--dangerously-listen-anywhere` lifts that.',
  },
  command_failed: {
    kind: 'invalid',
    summary: 'A command that was to be checked did not end with exit code 0.',
    advice: 'Read its output; leave `check` out to get the exit code instead of an error.',
  },
  tree_refused: {
    kind: 'invalid',
    summary: 'A tree from a sandbox holds something that is not written to this machine.',
    advice: 'Remove the entry that the message names inside the sandbox, or copy single files.',
  },
  source_changed: {
    kind: 'conflict',
    summary:
      'What would be, or was, mounted is not what was judged: a file or folder of the host was replaced meanwhile.',
    advice: 'Look at the path that the message names; if it is as you want it, start the sandbox again.',
  },
  mount_stale: {
    kind: 'conflict',
    summary:
      'A file or folder of the host that the sandbox has was removed or replaced, and to start again would end its commands or lose its work.',
    advice:
      'Wait for them or end them; then `sally stop` and `sally start` give the sandbox what is there now.',
  },
  stub_impossible: {
    kind: 'permission',
    summary: 'A path of a live workspace is to be protected, is not there, and cannot be held by a stub.',
    advice:
      'Make it yourself, work on a copy (`mode: copy`), or name it in `workspace.dangerously_unprotected`.',
  },
  egress_rule_invalid: {
    kind: 'invalid',
    summary: 'A rule about what a sandbox may reach cannot be used.',
    advice:
      'Write it as host, host:port, *.host, or a range such as 10.1.0.0/16; `docs/network.md` has all forms.',
  },
  egress_denied: {
    kind: 'permission',
    summary: 'What a program inside wanted to reach is not allowed.',
    advice: '`sally net log` shows what was denied and why; `sally net allow` allows it.',
  },
  egress_unreachable: {
    kind: 'unavailable',
    summary: 'What a program inside wanted to reach is allowed and could not be reached.',
    advice: 'See whether this machine can reach it; `sally net log` has the reason.',
  },
  tor_missing: {
    kind: 'unavailable',
    summary: 'The sandbox is to leave by Tor, and the program `tor` is not installed here.',
    advice: 'Install it (`apt-get install tor`), or name one that runs: `tor://127.0.0.1:9050`.',
  },
  tor_failed: {
    kind: 'unavailable',
    summary: 'The Tor client that the daemon starts ended.',
    advice:
      'Read its last words above; the next connection starts it again. SALLYPORT_TOR_CONFIG names settings of yours.',
  },
  tor_not_ready: {
    kind: 'timeout',
    summary: 'The Tor client has not built its first circuit in time.',
    advice:
      'See whether this machine reaches the Tor network; where that is blocked, name bridges in a file and SALLYPORT_TOR_CONFIG.',
  },
  upstream_refused: {
    kind: 'permission',
    summary: 'The proxy of `egress.upstream` wants a login, or does not take the one that it was given.',
    advice: 'Set the secret that `egress.upstream_secret` names; its value is `user:password`.',
  },
  egress_closed: {
    kind: 'conflict',
    summary: 'The sandbox was made without egress, so there is nothing to change.',
    advice: 'Make it with `egress` in its spec, or with `--allow` or `--egress`.',
  },
  agent_unknown: {
    kind: 'not_found',
    summary: 'There is no agent of this name.',
    advice: 'Use claude, codex or opencode, or describe your own (docs/agents.md).',
  },
  agent_not_ready: {
    kind: 'unavailable',
    summary: 'Something that the agent needs does not work, so it was not started.',
    advice: 'Do what is said of each of them, then start it again.',
  },
  secret_not_found: {
    kind: 'not_found',
    summary: 'There is no secret of this name.',
    advice: 'See `sally secret ls`, or set it with `sally secret set`.',
  },
  secret_invalid: {
    kind: 'invalid',
    summary: 'A secret cannot be kept as it was given.',
    advice: 'See `sally secret set --help`.',
  },
  secret_unavailable: {
    kind: 'unavailable',
    summary: 'The command that makes the value of a secret failed.',
    advice: 'Run the command by hand on this machine; what it prints is the value.',
  },
  keyring_unavailable: {
    kind: 'unavailable',
    summary:
      'The keyring of the system, which holds the value of a secret or is to hold it, is locked, hangs or is gone.',
    advice: 'Unlock it, or set the secret again with `--store file`.',
  },
  secret_unusable: {
    kind: 'unavailable',
    summary: 'A token that a run needs is missing, has expired, or is refused by its service.',
    advice: 'See `sally secret check`, then set a new one with `sally secret set`.',
  },
  approval_not_found: {
    kind: 'not_found',
    summary: 'There is no question of this id, or it was answered long ago.',
    advice: '`sally approvals` lists those that wait for an answer.',
  },
  approval_over: {
    kind: 'conflict',
    summary: 'The question was answered, withdrawn, or has expired.',
    advice: 'Run the guarded command again: it asks again.',
  },
  approval_refused: {
    kind: 'permission',
    summary: 'The answer came from somebody who may not give it: whoever asks cannot answer.',
    advice: 'Answer at a terminal with `sally approve` or `sally deny`, or set SALLYPORT_APPROVER_TOKEN.',
  },
  approval_word: {
    kind: 'invalid',
    summary: 'Three commands of this class were approved within a minute: this one takes the typed word.',
    advice: 'Read the command, then type `approve`, or give `--word approve`.',
  },
  approvals_full: {
    kind: 'exhausted',
    summary: 'Too many questions wait for an answer.',
    advice: 'Answer some of them: `sally approvals`.',
  },
  mcp_profile_not_found: {
    kind: 'not_found',
    summary: 'There is no profile of this name for MCP clients.',
    advice: 'See `sally mcp ls`, or make it with `sally mcp serve`.',
  },
  mcp_profiles_broken: {
    kind: 'invalid',
    summary: 'The file with the profiles of MCP clients cannot be understood.',
    advice: 'Look at mcp.json in the state folder; remove it, then make the profiles again.',
  },
  mcp_sessions_full: {
    kind: 'exhausted',
    summary: 'As many clients as the profile allows are connected.',
    advice: 'End one of them, wait until one is idle for long enough, or raise --max-sessions.',
  },
  release_unreachable: {
    kind: 'unavailable',
    summary: 'The release server or folder of SALLYPORT_RELEASES did not give its `latest.json`.',
    advice: 'Check the address and the network, then run `sally upgrade --check` again.',
  },
  release_invalid: {
    kind: 'unavailable',
    summary: 'SALLYPORT_RELEASES leads to something that is not the `latest.json` of a release.',
    advice: 'Set SALLYPORT_RELEASES to the URL or folder that `npm run release` filled.',
  },
  internal: {
    kind: 'internal',
    summary: 'Something failed that should not have.',
    advice: '`daemon.log` in the state folder has the details; please report them.',
  },
  usage: {
    kind: 'invalid',
    summary: 'The command line or an option value is wrong.',
    advice: 'See `sally --help`, or `--help` of the command.',
  },
  cancelled: {
    kind: 'cancelled',
    summary: 'The work was cancelled before it was done.',
    advice: 'Nothing half-made was left; run it again when you like.',
  },
} as const satisfies Record<string, ErrorDefinition>;

export type ErrorCode = keyof typeof errorRegistry;

/** Facts that belong to one failure (ids, paths, statuses): for programs, and for the `--json` output. */
export type ErrorDetails = Readonly<Record<string, string | number | boolean | readonly string[]>>;

export interface ErrorOptions {
  readonly details?: ErrorDetails;
  /** Replaces the registry's advice where the place of failure knows better. */
  readonly advice?: string;
  readonly cause?: unknown;
}

/** Known across the parts of a build that each have this class. */
const brand = Symbol.for('sallyport.error');

export class SallyportError extends Error {
  override readonly name = 'SallyportError';
  readonly [brand] = true;
  readonly code: ErrorCode;
  readonly kind: ErrorKind;
  readonly advice: string;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.kind = errorRegistry[code].kind;
    this.advice = options.advice ?? errorRegistry[code].advice;
    this.details = options.details ?? {};
  }
}

export function isSallyportError(error: unknown, code?: ErrorCode): error is SallyportError {
  if (!(error instanceof Error && brand in error)) return false;
  return code === undefined || (error as SallyportError).code === code;
}
