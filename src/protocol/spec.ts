/**
 * What a sandbox is asked to be: one schema for `sallyport.yaml`, the API's body, the SDK's options and the flags.
 *
 * It checks shape and values that need no look at the machine. Whether it may be done is for `policy/`. Unknown keys are
 * refused everywhere. Absent means the default; an empty list or map means none. Sizes become bytes and durations
 * milliseconds here, once, so that nobody later reads a unit.
 */

import { z } from 'zod';
import { builtinToolsSchema } from './builtin-tool-spec.ts';
import { egressPresetNames } from './egress-preset-names.ts';
import { engineNames } from './engine-environment.ts';
import { portsSchema } from './port-spec.ts';
import { isReservedLabel, reservedLabelPrefix } from './reserved-names.ts';
import { optionalServicesSchema, requiredServicesSchema } from './service-spec.ts';
import { argvSchema, duration, envsSchema, imageReference, limitsSchema, noNul } from './spec-values.ts';

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
  /** `live`: the folder itself. `readonly`: the same, not writable. `copy`: a copy; the folder stays as it is. `clone`: see `branch`. */
  mode: z.enum(['live', 'readonly', 'copy', 'clone']).default('live'),
  /** Of `clone`, and of it alone: the branch of the repository that is cloned; begun at HEAD where there is none of the name. */
  branch: noNul.min(1).max(1000).optional(),
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

/** One rule: a line, or its parts. Whether it can be understood is for `policy/egress` to say. */
export const egressRuleSchema = z.union([
  noNul.min(1).max(512),
  z.strictObject({
    host: noNul.min(1).max(300),
    ports: z.union([z.literal('any'), z.array(z.number().int().min(1).max(65535)).min(1).max(50)]).optional(),
    tcp: z.boolean().optional(),
    methods: z.array(noNul.max(20)).min(1).max(20).optional(),
    paths: z.array(noNul.max(1000)).min(1).max(100).optional(),
  }),
]);

const egressSchema = z.strictObject({
  /** `learn` and the last allow everything that is public, and record it. */
  mode: z.enum(['deny', 'learn', 'dangerously-allow-all']).optional(),
  /** Empty: nothing is allowed. */
  allow: z.array(egressRuleSchema).max(1000).optional(),
  deny: z.array(egressRuleSchema).max(1000).optional(),
  presets: z.array(z.enum(egressPresetNames)).max(20).optional(),
  /** Secrets of this user that the gate puts into requests. */
  credentials: z.array(nameSchema).max(50).optional(),
  /** By which way everything leaves: `direct`, `tor`, `tor://host:port`, `http://host:port`, `socks5://host:port`. */
  upstream: noNul.min(1).max(512).optional(),
  /** The secret with `user:password` for an upstream that wants it. */
  upstream_secret: nameSchema.optional(),
});

const buildSchema = z.strictObject({
  /** `ARG`s of the workspace's Dockerfile. */
  args: z
    .record(
      z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'is no name of a build argument'),
      noNul.max(32 * 1024),
    )
    .refine((args) => Object.keys(args).length <= 100, 'more than 100 build arguments')
    .optional(),
  /** `none`: its commands run without a network. */
  network: z.enum(['default', 'none']).optional(),
});

const imagesSchema = z.strictObject({
  default: imageReference.optional(),
  strict: imageReference.optional(),
});

export const specSchema = z.strictObject({
  /** Absent: see `images`. */
  image: imageReference.optional(),
  /** How the workspace's Dockerfile.sallyport is built, where there is one and no image is named. */
  build: buildSchema.optional(),
  /** Whose image it gets, where no image is named and the workspace has no Dockerfile. */
  agent: nameSchema.optional(),
  /** The image where neither `image`, the workspace's Dockerfile nor `agent` decides, by profile. Absent: the base image. */
  images: imagesSchema.optional(),
  /** Absent: by the workspace, or made up. */
  name: nameSchema.optional(),
  /** Absent: nothing of the host is inside. */
  workspace: workspaceSchema.optional(),
  mounts: z.array(mountSchema).max(100).optional(),
  /** Files and folders that are copied in when it is made. */
  copies: z.array(copySchema).max(100).optional(),
  /** Known tools with their folders of the user's home. */
  builtin_tools: builtinToolsSchema.optional(),
  /** Containers beside it, on a network of their own. */
  required_services: requiredServicesSchema.optional(),
  optional_services: optionalServicesSchema.optional(),
  /** Ports inside that this machine can reach. */
  ports: portsSchema.optional(),
  envs: envsSchema.optional(),
  labels: labelsSchema.optional(),
  limits: limitsSchema.optional(),
  profile: z.enum(['standard', 'strict']).optional(),
  /** Which engine it must be made by. Absent or `auto`: the one that the daemon works with. */
  engine: z.enum(engineNames).optional(),
  /** Absent: the engine's default. `strongest`: see `policy/strongest-runtime.ts`. */
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
  /** What it may reach. Absent: nothing, and there is no gate at all. */
  egress: egressSchema.optional(),
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
export type EgressSpec = NonNullable<Spec['egress']>;
