/**
 * What an agent is, as `agents/<name>/agent.yaml` says it: its program, its arguments, its image, what it may reach and which
 * tokens it is given. A definition names secrets and never binds one: where a token may go was decided when it was set.
 */

import { z } from 'zod';
import { egressRuleSchema, nameSchema } from '../protocol/spec.ts';
import { argvSchema, envsSchema, imageReference, noNul } from '../protocol/spec-values.ts';

const words = z.array(noNul.min(1).max(4096)).max(50);

/** Arguments in one of which the text is put. */
const wordsWith = (placeholder: string) =>
  words.refine(
    (list) => list.some((word) => word.includes(placeholder)),
    `has no ${placeholder}, where the text goes`,
  );

const configFile = z.strictObject({
  /** In the home folder inside. */
  path: z
    .string()
    .max(500)
    .regex(/^~\/(?!\.{1,2}(\/|$))[\w.-]+(\/(?!\.{1,2}(\/|$))[\w.-]+)*$/, 'must be ~/ and a plain path'),
  /** `{NAME}` is the variable of this name inside, `{NAME:-20}` its last 20 characters. */
  content: noNul.max(64 * 1024),
  /** Written only where the sandbox has this variable: settings of a service whose token it does not have would mislead. */
  needs: z
    .string()
    .regex(/^[A-Z][A-Z0-9_]{0,99}$/, 'must be the name of a variable')
    .optional(),
});

const credential = z.strictObject({
  /** Names of secrets, or of services that a secret is bound to. The first that is there is used. */
  one_of: z.array(nameSchema).min(1).max(10),
});

export const agentSchema = z
  .strictObject({
    description: noNul.max(200).optional(),
    /** The program, with the arguments that it always gets. */
    command: argvSchema,
    /** After them, for a run without a terminal; `{prompt}` is what is asked for. Absent: it has no such run. */
    headless: wordsWith('{prompt}').optional(),
    /** Where a model is named; `{model}` is its name. */
    model: wordsWith('{model}').optional(),
    /** Lets it act unasked: the sandbox is what holds it. Left out with `--ask`. */
    skip_permissions: words.optional(),
    /** One of the package's templates; or an image. */
    template: nameSchema.optional(),
    image: imageReference.optional(),
    /** Hosts besides those of its tokens. That one of them cannot be reached does not keep it from starting. */
    allow: z.array(egressRuleSchema).max(100).optional(),
    credentials: z.array(credential).max(10).optional(),
    envs: envsSchema.optional(),
    /** Its settings, written where there are none. */
    files: z.array(configFile).max(20).optional(),
  })
  .refine(
    ({ template, image }) => template === undefined || image === undefined,
    'has both a template and an image',
  );

export type AgentDefinition = z.output<typeof agentSchema>;

export interface Agent extends AgentDefinition {
  readonly name: string;
  /** The file that says so. */
  readonly file: string;
}
