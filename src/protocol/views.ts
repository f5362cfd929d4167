/** What the API answers with. Schemas, because the OpenAPI page is made from them; clients import the types alone. */

import { z } from 'zod';
import { isolationLevels } from './isolation-level.ts';
import { execStates, sandboxStates, serviceStates } from './states.ts';

const time = z.iso.datetime();

export const errorView = z.strictObject({
  code: z.string(),
  kind: z.string(),
  message: z.string(),
  advice: z.string(),
  details: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.array(z.string())])),
});

const isolationView = z.strictObject({
  engine: z.string(),
  engine_version: z.string(),
  /** As the engine names it; `strongest` until one is chosen. */
  runtime: z.string(),
  /** How much this runtime isolates. Absent: none is chosen yet. */
  level: z.enum(isolationLevels).optional(),
  profile: z.enum(['standard', 'strict']),
  /** `services`: a network with its services alone, from which nothing leads out. */
  network: z.enum(['none', 'services']),
  /** What this engine isolates less than a container engine. Absent: nothing. */
  weaker: z.array(z.string()).optional(),
});

const serviceView = z.strictObject({
  name: z.string(),
  required: z.boolean(),
  image: z.string(),
  state: z.enum(serviceStates),
  /** Why it failed. */
  reason: z.string().optional(),
  container_id: z.string().optional(),
});
export type ServiceView = z.infer<typeof serviceView>;

export const portView = z.strictObject({
  /** Of this machine. */
  addresses: z.array(z.string()),
  host: z.number().int(),
  box: z.number().int(),
  /** Closed while the sandbox does not run, or while another program has the port. */
  open: z.boolean(),
});
export type PortView = z.infer<typeof portView>;

/** A port for the browser of one user. */
export const previewView = z.strictObject({
  id: z.string(),
  /** Inside. */
  box: z.number().int(),
  /** Where it is; of no use without a link. */
  origin: z.string(),
  /** How long a browser gets in, and how many do. */
  session_ms: z.number().int(),
  sessions: z.number().int(),
  /** Of a new one: works once, and until then. */
  url: z.string().optional(),
  url_expires_at: time.optional(),
  /** A page that leads to it, for its owner alone: command lines are read by others. */
  launch_file: z.string().optional(),
});
export type PreviewView = z.infer<typeof previewView>;

/** The browser of a sandbox. Both addresses contain the token that its DevTools ask for. */
export const browserView = z.strictObject({
  /** WebSocket of the browser itself. */
  endpoint: z.string(),
  /** For clients that ask `/json/version` first. */
  url: z.string(),
  /** Of this machine. */
  port: z.number().int(),
  exec_id: z.string(),
});
export type BrowserView = z.infer<typeof browserView>;

export const sandboxView = z.strictObject({
  id: z.string(),
  name: z.string(),
  state: z.enum(sandboxStates),
  /** Why it is in this state, where that is not obvious. */
  reason: z.string().optional(),
  /** The sequence number of the last event of this sandbox: events after it are news. */
  sequence: z.number().int(),
  created_at: time,
  started_at: time.optional(),
  stopped_at: time.optional(),
  image: z.string(),
  container_id: z.string().optional(),
  user: z.strictObject({ uid: z.number().int(), gid: z.number().int(), home: z.string() }),
  workspace: z
    .strictObject({
      path: z.string(),
      target: z.string(),
      mode: z.enum(['live', 'readonly', 'copy', 'clone']),
      /** Of a clone. */
      branch: z.string().optional(),
    })
    .optional(),
  workdir: z.string(),
  limits: z.strictObject({
    memory_bytes: z.number(),
    cpus: z.number(),
    pids: z.number().int(),
    nofile: z.number().int(),
    disk_bytes: z.number(),
  }),
  /** Disk usage of the sandbox itself. */
  disk: z.strictObject({
    /** The last measurement. */
    used_bytes: z.number().optional(),
    measured_at: time.optional(),
    /** The rule that stopped the sandbox: its own limit, or the reserve of the engine's disk. */
    exceeded: z.enum(['limit', 'reserve']).optional(),
    /** A clean-up run: only files and shells are available. */
    clean_up: z.literal(true).optional(),
  }),
  labels: z.record(z.string(), z.string()),
  isolation: isolationView,
  /** In the order of the spec, required ones first. */
  services: z.array(serviceView),
  /** That this machine can reach. */
  ports: z.array(portView),
  /** Removed by itself when its command ends or its client goes away. */
  /** Absent: there is no gate, and nothing can be reached. */
  egress: z.strictObject({ mode: z.string() }).optional(),
  ephemeral: z.boolean(),
  idle_ttl_ms: z.number().optional(),
  expires_at: time.optional(),
  running_execs: z.number().int(),
  /** A scan says what was planted in its live workspace or in tools' folders. */
  scanned: z.literal(true).optional(),
});
export type SandboxView = z.infer<typeof sandboxView>;

/** What a sandbox is made of, for who makes the base image out of it. */
export const provisionSourceView = z.strictObject({ image: z.string(), image_id: z.string() });
export type ProvisionSourceView = z.infer<typeof provisionSourceView>;

/** A host and a port that the gate denied, and how often. */
const deniedHost = z.strictObject({
  host: z.string(),
  port: z.number().int(),
  count: z.number().int(),
  code: z.string(),
  reason: z.string(),
  advice: z.string(),
});

export const execView = z.strictObject({
  id: z.string(),
  sandbox_id: z.string(),
  argv: z.array(z.string()),
  cwd: z.string(),
  tty: z.boolean(),
  state: z.enum(execStates),
  started_at: time,
  ended_at: time.optional(),
  duration_ms: z.number().optional(),
  pid: z.number().int().optional(),
  exit_code: z.number().int().optional(),
  /** By name, as SIGKILL; absent when the program ended by itself. */
  signal: z.string().optional(),
  timed_out: z.boolean(),
  /** The kernel killed it because the sandbox's memory was used up. */
  oom_killed: z.boolean(),
  /** Its own memory limit was exceeded. */
  memory_limit_exceeded: z.boolean(),
  /** It was killed by a call. */
  killed: z.boolean(),
  output_incomplete: z.boolean(),
  left_behind: z.number().int(),
  user_cpu_ms: z.number().optional(),
  system_cpu_ms: z.number().optional(),
  max_rss_bytes: z.number().optional(),
  stdout_bytes: z.number().int(),
  stderr_bytes: z.number().int(),
  /** Why it was refused or lost. */
  error: errorView.optional(),
  /** Only in the answer to its start: what it asks for beyond the sandbox passes the gate. */
  gated: z.literal(true).optional(),
  /** With it: what the sandbox was denied until then. */
  denied_before: z.array(deniedHost).optional(),
  /** Only in the answer to its start: the workspace is live, or a tool's folder is, and a scan says what was planted there. */
  live: z.literal(true).optional(),
});
export type ExecView = z.infer<typeof execView>;

/** At most 256 KiB of a stream: its head and its tail, with a line between them that says how much is left out. */
export const capturedView = z.strictObject({
  encoding: z.enum(['utf8', 'base64']),
  data: z.string(),
  truncated: z.boolean(),
  total_bytes: z.number().int(),
});
export type CapturedView = z.infer<typeof capturedView>;

export const execResultView = z.strictObject({
  exec: execView,
  stdout: capturedView,
  stderr: capturedView,
  /** Both, in the order of their arrival. */
  output: capturedView,
});
export type ExecResultView = z.infer<typeof execResultView>;

export const statView = z.strictObject({
  kind: z.enum(['file', 'directory', 'symlink', 'fifo', 'socket', 'block', 'character', 'unknown']),
  /** Base64 as well where the name is no UTF-8. */
  name: z.string(),
  name_base64: z.string().optional(),
  size: z.number(),
  mode: z.number().int(),
  uid: z.number().int(),
  gid: z.number().int(),
  modified_at: time,
  link_target: z.string().optional(),
});
export type StatView = z.infer<typeof statView>;

/** What a directory holds: kind and name, and the rest of `statView` where it was asked for. */
export const entryView = statView.partial().required({ kind: true, name: true });
export type EntryView = z.infer<typeof entryView>;

export const watchView = z.strictObject({
  /** `ready` comes first: from there on nothing is missed. After `overflow` look at everything again. */
  kind: z.enum(['created', 'changed', 'removed', 'moved', 'overflow', 'ready']),
  /** Relative to what is watched; empty for itself. Base64 as well where it is no UTF-8. */
  path: z.string(),
  path_base64: z.string().optional(),
});
export type WatchView = z.infer<typeof watchView>;

const changeSide = z.strictObject({
  /** `unknown`: neither of the others, or not to be read. */
  kind: z.enum(['file', 'directory', 'symlink', 'unknown']),
  /** Of a file: permission bits, size and hash. */
  mode: z.number().int().optional(),
  size: z.number().optional(),
  sha256: z.string().optional(),
  /** Of a link. Base64 as well where it is no UTF-8. */
  link_target: z.string().optional(),
  link_target_base64: z.string().optional(),
  /** Of a file before: whether its content is kept. */
  kept: z.boolean().optional(),
  /** False: a file that is too large to compare. It has no hash, and may be as it was copied in. */
  compared: z.literal(false).optional(),
});

export const changeView = z.strictObject({
  /** Relative to the workspace. Base64 as well where it is no UTF-8. */
  path: z.string(),
  path_base64: z.string().optional(),
  change: z.enum(['added', 'changed', 'removed']),
  /** As it was copied in. */
  before: changeSide.optional(),
  /** As it is inside now. */
  after: changeSide.optional(),
});
export type ChangeView = z.infer<typeof changeView>;

export const changesView = z.strictObject({
  /** The folder of the host, and where its copy is. */
  source: z.string(),
  target: z.string(),
  changes: z.array(changeView),
});
export type ChangesView = z.infer<typeof changesView>;

export const statsView = z.strictObject({
  at: time,
  memory_bytes: z.number(),
  memory_limit_bytes: z.number(),
  cpu_seconds: z.number(),
  pids: z.number().int(),
});
export type StatsView = z.infer<typeof statsView>;

const verifyCheck = z.strictObject({
  name: z.string(),
  expected: z.string(),
  found: z.string(),
  /** `unknown`: this runtime does not show it from inside. */
  status: z.enum(['ok', 'failed', 'unknown']),
  /** Of one that failed: what to do. */
  advice: z.string().optional(),
});
export type VerifyCheck = z.infer<typeof verifyCheck>;

export const verifyView = z.strictObject({ ok: z.boolean(), checks: z.array(verifyCheck) });
export type VerifyView = z.infer<typeof verifyView>;

/** What a scan of a live workspace and of tools' folders found that programs of the host may execute. */
export const workspaceScanView = z.strictObject({
  /** False: the scan goes on, and this is what is known until now. */
  finished: z.boolean(),
  /** Why not everything was scanned. */
  incomplete: z.string().optional(),
  planted: z.array(
    z.strictObject({
      /** Relative to the workspace; in a tool's folder from the home on: `~/.claude/x`. */
      path: z.string(),
      /** Of a tool's folder: which one. */
      tool: z.string().optional(),
      kind: z.enum([
        'git directory',
        'git pointer',
        'git operation',
        'invalid HEAD',
        'closed folder',
        'npx program',
        'name',
      ]),
      /** Compared with what was there when the sandbox was made. */
      how: z.enum(['new', 'changed']),
      found_at: time,
      advice: z.string(),
    }),
  ),
});
export type WorkspaceScanView = z.infer<typeof workspaceScanView>;

/** The answer to a stop; `scan` is absent where nothing is scanned. */
export const stoppedView = sandboxView.extend({ scan: workspaceScanView.optional() });
export type StoppedView = z.infer<typeof stoppedView>;

export const healthView = z.strictObject({
  version: z.string(),
  api: z.literal('v1'),
  pid: z.number().int(),
  owner: z.string(),
  started_at: time,
  engine: z.strictObject({
    /** `docker`, `podman`, `bubblewrap`. */
    name: z.string(),
    endpoint: z.string(),
    version: z.string(),
    reachable: z.boolean(),
  }),
  /** Names the engine among those of this user: `docker`, `docker-1a2b3c4d`, `bubblewrap`. Each has a daemon of its own. */
  engine_key: z.string(),
  sandboxes: z.record(z.string(), z.number().int()),
  sequence: z.number().int(),
});
export type HealthView = z.infer<typeof healthView>;

/** One decision of the gate, as its log has it. */
export const egressLineView = z.strictObject({
  at: z.iso.datetime(),
  allowed: z.boolean(),
  entrance: z.string(),
  scheme: z.string(),
  host: z.string(),
  /** 0: only the name was asked for. */
  port: z.number().int(),
  method: z.string().optional(),
  path: z.string().optional(),
  rule: z.string().optional(),
  code: z.string().optional(),
  reason: z.string().optional(),
  /** The command that would allow it, or why none would. */
  advice: z.string().optional(),
  bytes_out: z.number().int(),
  bytes_in: z.number().int(),
  duration_ms: z.number(),
  status: z.number().int().optional(),
  error: z.string().optional(),
});
export type EgressLineView = z.infer<typeof egressLineView>;

export const netView = z.strictObject({
  mode: z.enum(['deny', 'learn', 'dangerously-allow-all']),
  allow: z.array(z.string()),
  deny: z.array(z.string()),
  presets: z.array(z.string()),
  upstream: z.string(),
  open_connections: z.number().int(),
  /** Since the daemon began, at most 200, by host and port. */
  denied: z.array(deniedHost),
  /** What was reached since the daemon began, as the rules that would allow just that. */
  reached: z.array(z.string()),
});
export type NetView = z.infer<typeof netView>;

export const pruneView = z.strictObject({
  things: z.array(
    z.strictObject({
      kind: z.enum(['sandbox', 'service', 'network', 'volume', 'image']),
      id: z.string(),
      name: z.string(),
      why: z.string(),
      /** As far as the engine tells: what a sandbox wrote, the layers of an image. */
      size_bytes: z.number(),
      outcome: z.enum(['removed', 'would_be_removed', 'kept']),
      /** Why it was kept. */
      note: z.string().optional(),
    }),
  ),
  freed_bytes: z.number(),
});
export type PruneView = z.infer<typeof pruneView>;
