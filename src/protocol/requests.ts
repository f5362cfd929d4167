/** What the API is asked: the bodies of requests. Queries are parsed by their routes. */

import { z } from 'zod';
import { portSchema } from './port-spec.ts';
import { egressRuleSchema, specSchema } from './spec.ts';
import { argvSchema, diskSize, envsSchema } from './spec-values.ts';

const wholeMs = z
  .number()
  .int()
  .min(0)
  .max(2 ** 31 - 1);

export const createBody = z.strictObject({
  spec: specSchema.default({}),
  /** Removed when the exec `main` ends, or when no client has been connected for a while. */
  ephemeral: z.boolean().default(false),
  /** With `ephemeral`: the client may go away. */
  detached: z.boolean().default(false),
  /** A sandbox of this name is used if it has the same spec (G1). */
  reuse: z.boolean().default(false),
  /** The `approval` of the workspace's Dockerfile as somebody saw it: exactly that is built, and nothing else. */
  approved_dockerfile: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
  /** Where the client itself runs from: read-only inside where a live workspace contains it. */
  programs: z.array(z.string().startsWith('/').max(4095)).max(8).optional(),
});
export type CreateBody = z.infer<typeof createBody>;
export type CreateInput = z.input<typeof createBody>;

export const execBody = z.strictObject({
  argv: argvSchema,
  envs: envsSchema.default({}),
  /** Absent: the sandbox's. */
  cwd: z.string().min(1).max(4095).optional(),
  /** Without it the program reads end of file at once. */
  stdin: z.boolean().default(false),
  tty: z
    .strictObject({ rows: z.number().int().min(1).max(65535), columns: z.number().int().min(1).max(65535) })
    .optional(),
  /** TERM at this time, KILL after the grace. 0: no limit. */
  timeout_ms: wholeMs.default(300_000),
  grace_ms: wholeMs.default(5000),
  memory_limit_bytes: z
    .number()
    .int()
    .min(2 ** 20)
    .optional(),
  /** Goes on when the client goes away. */
  background: z.boolean().default(false),
  /** Kept in the audit line: why this was run. */
  reason: z.string().max(1000).optional(),
  /** Run the command also in a clean-up run, which refuses other commands. */
  during_clean_up: z.boolean().optional(),
});
export type ExecBody = z.infer<typeof execBody>;
export type ExecInput = z.input<typeof execBody>;

export const publishBody = z.strictObject({ port: portSchema });

export const previewBody = z.strictObject({
  /** Inside. */
  port: z.number().int().min(1).max(65535),
  /** Where the browser begins. */
  path: z
    .string()
    .regex(/^\/(?![/\\])[\x21-\x7e]*$/, 'is no path of a page')
    .max(2000)
    .default('/'),
  /** So long a browser that came by a link gets in. */
  ttl_ms: z
    .number()
    .int()
    .min(1000)
    .max(30 * 86_400_000)
    .optional(),
});
export type PreviewBody = z.infer<typeof previewBody>;

const pixels = z.number().int().min(1).max(32_767);

/** Chromium in a sandbox, for clients of the DevTools protocol. */
export const browserBody = z.strictObject({
  /** Size of the window in pixels. */
  window: z.strictObject({ width: pixels, height: pixels }).default({ width: 1280, height: 720 }),
  /** Name or path of Chromium inside. */
  program: z.string().min(1).max(4095).default('chromium'),
  /** More flags of Chromium. The flags that keep it from leaking come last and stay in force. */
  flags: z.array(z.string().min(1).max(4095)).max(100).default([]),
  /** Port of this machine; a free one if absent. */
  port: z.number().int().min(1).max(65535).optional(),
});
export type BrowserBody = z.infer<typeof browserBody>;
export type BrowserInput = z.input<typeof browserBody>;

export const startBody = z.strictObject({
  /** One run for files and shells: without command, services, ports and gate. */
  clean_up: z.boolean().default(false),
  /** The new disk limit. */
  disk: diskSize.optional(),
});

export const stopBody = z.strictObject({ grace_ms: wholeMs.default(5000) });
export const signalBody = z.strictObject({ signal: z.string().regex(/^SIG[A-Z0-9]{1,10}$/) });
export const killBody = z.strictObject({ grace_ms: wholeMs.default(5000) });
export const resizeBody = z.strictObject({
  rows: z.number().int().min(1).max(65535),
  columns: z.number().int().min(1).max(65535),
});
export const pruneBody = z.strictObject({
  dry_run: z.boolean().default(false),
  /** What was stopped so long ago goes as well; absent: after 15 days. */
  older_than_ms: z.number().int().min(1).optional(),
  /** Only sandboxes of this agent; absent: all, and networks, volumes and images that are left over. */
  agent: z.string().min(1).max(100).optional(),
});
export type PruneInput = z.input<typeof pruneBody>;

export const shutdownBody = z.strictObject({
  /** Sandboxes go on running; else they are stopped. */
  keep: z.boolean().default(false),
});

/** Without set-id bits, which nobody sets in a sandbox. */
const mode = z.number().int().min(0).max(0o1777);
/** As text, or as base64 where the name is no UTF-8. */
const filePath = z.union([
  z.string().min(1).max(4095),
  z.strictObject({ base64: z.base64().min(1).max(5460) }),
]);
export type FilePathBody = z.infer<typeof filePath>;
export const mkdirBody = z.strictObject({
  path: filePath,
  mode: mode.optional(),
  /** Also the directories above it; one that is there is no error. */
  parents: z.boolean().default(false),
});
export const removeFileBody = z.strictObject({ path: filePath, recursive: z.boolean().default(false) });
export const renameBody = z.strictObject({ from: filePath, to: filePath });
export const symlinkBody = z.strictObject({ target: filePath, path: filePath });
export const chmodBody = z.strictObject({ path: filePath, mode });

/** Of the content: `lib/content-hash.ts`. */
const sha256 = z.string().regex(/^(?:holes:)?[0-9a-f]{64}$/);
/** What a path of the workspace's folder is on the host now, as it was brought back: a line of the body each. */
export const broughtBack = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('absent'), path: filePath }),
  z.strictObject({ kind: z.literal('directory'), path: filePath }),
  z.strictObject({ kind: z.literal('symlink'), path: filePath, target: filePath }),
  z.strictObject({
    kind: z.literal('file'),
    path: filePath,
    mode: z.number().int().min(0).max(0o777),
    size: z.number().int().min(0),
    sha256,
  }),
]);
export type BroughtBackInput = z.input<typeof broughtBack>;

export const netChangeBody = z.strictObject({
  allow: z.array(egressRuleSchema).max(100).default([]),
  deny: z.array(egressRuleSchema).max(100).default([]),
});
export type NetChangeInput = z.input<typeof netChangeBody>;
export type NetChange = z.output<typeof netChangeBody>;

/** Asked of a person, by who may not allow it. */
export const netRequestBody = z.strictObject({
  allow: z.array(egressRuleSchema).min(1).max(20),
  /** In the words of who asks; the person reads it. */
  reason: z.string().max(300).default(''),
  expires_in_ms: z.number().int().min(1).max(300_000).default(300_000),
});
export type NetRequest = z.output<typeof netRequestBody>;
