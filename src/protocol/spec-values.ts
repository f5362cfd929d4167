/** Values that more than one part of a spec is made of: sizes, durations, variables, limits, command lines. */

import { z } from 'zod';
import { parseDuration } from '../lib/durations.ts';
import { parseSize } from '../lib/sizes.ts';
import { smallestDiskBytes, smallestMemoryBytes } from './box.ts';
import { isReservedEnv, reservedEnvPrefix } from './reserved-names.ts';

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

export const diskSize = size('20g or 40g').superRefine((bytes, context) => {
  if (bytes >= smallestDiskBytes) return;
  const meant = bytes < 4096 ? `; did you mean ${bytes}g?` : '';
  context.addIssue({
    code: 'custom',
    message: `is ${bytes} bytes, and a sandbox needs at least 64m${meant}`,
  });
});

/** `never` is a value of its own: 0 could be read as "at once" or as "no limit". */
export const duration = z.string().transform((value, context) => {
  if (value === 'never') return value;
  const ms = parseDuration(value);
  if (ms === undefined || ms === 0) {
    context.addIssue({ code: 'custom', message: 'is no duration; write it like 30s, 15m, 1h30m, or never' });
    return z.NEVER;
  }
  return ms;
});

/** One that has an end. */
export const timeSpan = z.string().transform((value, context) => {
  const ms = parseDuration(value);
  if (ms === undefined) {
    context.addIssue({ code: 'custom', message: 'is no duration; write it like 500ms, 2s or 1m' });
    return z.NEVER;
  }
  return ms;
});

export const noNul = z.string().refine((text) => !text.includes('\0'), 'contains a NUL');

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

export const limitsSchema = z.strictObject({
  memory: memory.optional(),
  cpus: z.number().min(0.01).max(1024).optional(),
  pids: z.number().int().min(1).max(4_194_304).optional(),
  nofile: z.number().int().min(16).max(1_048_576).optional(),
  disk: diskSize.optional(),
});

export const argvSchema = z.array(noNul).min(1).max(10_000);

export const imageReference = z
  .string()
  .min(1)
  .max(512)
  .regex(/^[\w][\w.:/@-]*$/, 'is no image reference');
