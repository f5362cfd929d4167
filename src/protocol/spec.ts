/**
 * What a sandbox is asked to be: one schema for `sallyport.yaml`, the API's body, the SDK's options and the flags.
 *
 * It checks shape and values that need no look at the machine. Whether it may be done is for `policy/`. Unknown keys are
 * refused everywhere. Absent means the default; an empty list or map means none. Sizes become bytes and durations
 * milliseconds here, once, so that nobody later reads a unit.
 */

import { z } from 'zod';
import { closest } from '../lib/closest.ts';
import { parseDuration } from '../lib/durations.ts';
import { parseSize } from '../lib/sizes.ts';
import { smallestMemoryBytes } from './box.ts';
import { builtinToolNames } from './builtin-tool-names.ts';
import { isReservedEnv, isReservedLabel, reservedEnvPrefix, reservedLabelPrefix } from './reserved-names.ts';

const mostEntries = 1000;
const mostEnvironmentBytes = 512 * 1024;

const size = (example: string) =>
  z.union([z.string(), z.number()]).transform((value, context) => {
    const bytes = typeof value === 'number' ? value : parseSize(value);
    if (bytes === undefined || !Number.isSafeInteger(bytes) || bytes <= 0) {
      context.addIssue({ code: 'custom', message: `is no size; write it like ${example}` });
      return z.NEVER;
    }
    return bytes;
  });

const memory = size('512m or 4g').superRefine((bytes, context) => {
  if (bytes >= smallestMemoryBytes) return;
  const meant = bytes < 4096 ? `; did you mean ${bytes}m?` : '';
  context.addIssue({
    code: 'custom',
    message: `is ${bytes} bytes, and nothing starts with less than 16m${meant}`,
  });
});

/** `never` is a value of its own: 0 could be read as "at once" or as "no limit". */
const duration = z.string().transform((value, context) => {
  if (value === 'never') return value;
  const ms = parseDuration(value);
  if (ms === undefined || ms === 0) {
    context.addIssue({ code: 'custom', message: 'is no duration; write it like 30s, 15m, 1h30m, or never' });
    return z.NEVER;
  }
  return ms;
});

const noNul = z.string().refine((text) => !text.includes('\0'), 'contains a NUL');

const insidePath = noNul
  .max(4095)
  .refine((path) => path.startsWith('/'), 'must be absolute inside the sandbox')
  .refine((path) => !path.split('/').includes('..'), 'must not contain ..');

const hostPath = noNul.min(1).max(4095);

export const nameSchema = z
  .string()
  .regex(
    /^[a-z0-9]([a-z0-9_.-]{0,61}[a-z0-9])?$/,
    'is no name: use a-z, 0-9, ".", "_" and "-", 1 to 63 characters',
  );

const envName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'is no name of a variable')
  .refine(
    (name) => !isReservedEnv(name),
    `is reserved: names that begin with ${reservedEnvPrefix} are Sallyport's own`,
  );

export const envsSchema = z
  .record(envName, noNul)
  .refine((envs) => Object.keys(envs).length <= mostEntries, `more than ${mostEntries} variables`)
  .refine(
    (envs) =>
      Object.entries(envs).reduce((sum, [key, value]) => sum + key.length + value.length, 0) <=
      mostEnvironmentBytes,
    'more than 512 KiB of variables; put large values into a file',
  );

const labelName = z
  .string()
  .min(1)
  .max(200)
  .refine(
    (name) => !isReservedLabel(name),
    `is reserved: labels that begin with ${reservedLabelPrefix} tell Sallyport what is its own`,
  );

const labelsSchema = z
  .record(labelName, noNul.max(4096))
  .refine((labels) => Object.keys(labels).length <= 100, 'more than 100 labels');

/** What is left out of a copy. */
const excludes = {
  exclude_patterns: z.array(noNul.min(1).max(1000)).max(1000).optional(),
  /** Files at the root of what is copied, such as `.gitignore`. */
  exclude_from: z
    .array(
      noNul.regex(/^(?!\.{1,2}$)[^/]{1,255}$/, 'must be the name of a file at the root of what is copied'),
    )
    .max(10)
    .optional(),
};

const insideWorkspace = noNul
  .min(1)
  .max(4095)
  .refine((path) => !path.startsWith('/'), 'must be relative to the workspace')
  .refine(
    (path) => path.split('/').some((part) => part !== '' && part !== '.'),
    'must name something in the workspace',
  )
  .refine((path) => !path.split('/').includes('..'), 'must not contain ..');

const workspaceSchema = z.strictObject({
  /** On the host. Relative to the file that says it, or to the working directory. */
  path: hostPath,
  target: insidePath.default('/workspace'),
  /** `live`: the folder itself. `readonly`: the same, not writable. `copy`: a copy; the folder stays as it is. */
  mode: z.enum(['live', 'readonly', 'copy']).default('live'),
  /** Of `copy` alone. */
  ...excludes,
  /** Live: held read-only inside, with what always is. */
  protect: z.array(insideWorkspace).max(100).optional(),
  /** Live: of what is always held read-only, what shall be writable; or `all`. */
  dangerously_unprotected: z.array(insideWorkspace).max(100).optional(),
});

const mountSchema = z.strictObject({
  source: hostPath,
  target: insidePath,
  writable: z.boolean().default(false),
});

const copySchema = z.strictObject({ source: hostPath, target: insidePath, ...excludes });

const builtinTool = z.enum(builtinToolNames, {
  error: ({ input }) => {
    const meant = closest(String(input), builtinToolNames);
    const known = `the built-in tools are ${builtinToolNames.join(', ')}`;
    return `is no built-in tool; ${meant === undefined ? '' : `did you mean ${meant}? `}${known}`;
  },
});

const limitsSchema = z.strictObject({
  memory: memory.optional(),
  cpus: z.number().min(0.01).max(1024).optional(),
  pids: z.number().int().min(1).max(4_194_304).optional(),
  nofile: z.number().int().min(16).max(1_048_576).optional(),
});

export const argvSchema = z.array(noNul).min(1).max(10_000);

export const specSchema = z.strictObject({
  /** Absent: the base image. */
  image: z
    .string()
    .min(1)
    .max(512)
    .regex(/^[\w][\w.:/@-]*$/, 'is no image reference')
    .optional(),
  /** Absent: by the workspace, or made up. */
  name: nameSchema.optional(),
  /** Absent: nothing of the host is inside. */
  workspace: workspaceSchema.optional(),
  mounts: z.array(mountSchema).max(100).optional(),
  /** Files and folders that are copied in when it is made. */
  copies: z.array(copySchema).max(100).optional(),
  /** Known tools with their folders of the user's home. */
  builtin_tools: z.array(builtinTool).max(100).optional(),
  envs: envsSchema.optional(),
  labels: labelsSchema.optional(),
  limits: limitsSchema.optional(),
  profile: z.enum(['standard', 'strict']).optional(),
  /** Absent: the engine's default. */
  runtime: z
    .string()
    .min(1)
    .max(100)
    .regex(/^[\w][\w.-]*$/, 'is no runtime')
    .optional(),
  /** `uid:gid`. Absent: the host's with a live workspace, else one of its own. */
  user: z
    .string()
    .regex(/^\d{1,10}:\d{1,10}$/, 'must be uid:gid in numbers, such as 1000:1000')
    .optional(),
  /** Only `none` exists: a sandbox has no network card. */
  network: z
    .literal('none', 'must be none: a sandbox has no network card, and egress opens what it may reach')
    .optional(),
  /** Where commands start. Absent: the workspace, else the home folder. */
  workdir: insidePath.optional(),
  /** Runs as the exec `main` as soon as the sandbox is ready. */
  command: argvSchema.optional(),
  /** Stopped after this long without an exec, a tunnel or a call. */
  idle_ttl: duration.optional(),
  /** Stopped this long after its creation, whatever runs. */
  max_lifetime: duration.optional(),
});

/** As it is written. */
export type SpecInput = z.input<typeof specSchema>;
/** As it is understood: sizes in bytes, durations in milliseconds. */
export type Spec = z.output<typeof specSchema>;
