/** Images in the API: what is asked and what is answered. */

import { z } from 'zod';
import { specSchema } from './spec.ts';
import { errorView } from './views.ts';

const hash = z.string().regex(/^[0-9a-f]{64}$/);
const time = z.iso.datetime();

/** The folder of a project, and how its Dockerfile is built. */
const projectFields = {
  folder: z
    .string()
    .min(1)
    .max(4095)
    .refine((path) => path.startsWith('/') && !path.includes('\0'), 'must be an absolute path'),
  build: specSchema.shape.build,
};

export const projectBody = z.strictObject(projectFields);
export type ProjectInput = z.input<typeof projectBody>;

export const buildBody = z.strictObject({
  ...projectFields,
  /** The `approval` of what somebody saw. */
  approved: hash.optional(),
  /** Ask registries for newer bases, and do every step again. */
  rebuild: z.boolean().default(false),
});

export const pruneImagesBody = z.strictObject({ dry_run: z.boolean().default(false) });

/** What a Dockerfile asks for, before anything of it is done. */
export const dockerfileView = z.strictObject({
  folder: z.string(),
  file: z.string(),
  /** Stands for exactly this Dockerfile, these files, arguments and network. */
  approval: hash,
  bases: z.array(z.string()),
  /** How many commands run while it is built. */
  runs: z.number().int(),
  files: z.number().int(),
  bytes: z.number(),
  network: z.enum(['default', 'none']),
});
export type DockerfileView = z.infer<typeof dockerfileView>;

export const imageView = z.strictObject({
  reference: z.string().optional(),
  id: z.string(),
  kind: z.string(),
  /** As the engine counts: with the layers that it shares with others. */
  size_bytes: z.number(),
  /** The folder whose last build it is. */
  folder: z.string().optional(),
  /** Names of sandboxes. */
  used_by: z.array(z.string()),
});
export type ImageView = z.infer<typeof imageView>;

export const builtView = z.strictObject({
  reference: z.string(),
  id: z.string(),
  fingerprint: hash,
  how: z.enum(['present', 'built']),
  duration_ms: z.number(),
});
export type BuiltView = z.infer<typeof builtView>;

/** One message of a build's stream; `done` or `failed` is the last. */
export const buildMessage = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('progress'),
    step: z.string(),
    message: z.string(),
    current: z.number().optional(),
    total: z.number().optional(),
  }),
  z.strictObject({ type: z.literal('note'), code: z.string(), message: z.string() }),
  z.strictObject({ type: z.literal('done'), image: builtView }),
  z.strictObject({ type: z.literal('failed'), error: errorView }),
]);
export type BuildMessage = z.infer<typeof buildMessage>;

export const whyView = z.strictObject({
  folder: z.string(),
  /** The name that the image has or would have. */
  reference: z.string(),
  is_there: z.boolean(),
  added: z.array(z.string()),
  removed: z.array(z.string()),
  changed: z.array(z.string()),
  last_build: z
    .strictObject({
      reference: z.string(),
      fingerprint: hash,
      built_at: time,
      duration_ms: z.number().optional(),
    })
    .optional(),
});
export type WhyView = z.infer<typeof whyView>;

export const prunedImageView = z.strictObject({
  reference: z.string(),
  size_bytes: z.number(),
  why: z.string(),
  removed: z.boolean(),
});
export type PrunedImageView = z.infer<typeof prunedImageView>;
