/**
 * Secrets as the API has them. A secret is bound where it is set: to hosts, a port, a path and headers. Its value goes in and
 * never comes out; no view has a field for it.
 */

import { z } from 'zod';
import { type KnownService, knownServices } from './known-service-names.ts';
import { isReservedEnv } from './reserved-names.ts';

/** Words of the command line and of file names; none of them needs quoting. */
export const secretName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,62}$/, 'is not a name of lower case letters, digits, dots and dashes');

const hostName = z
  .string()
  .regex(
    /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)+$/,
    'is no host name (no pattern, no port, no scheme: a secret goes to hosts that are named one by one)',
  );

const headerName = z.string().regex(/^[a-z0-9-]{1,64}$/, 'is no name of a header in lower case');
/** What decides where a message goes or how long it is holds no secret. */
const neverHeaders = new Set(['host', 'content-length', 'transfer-encoding', 'connection', 'upgrade', 'te']);

const envName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'is no name of a variable')
  .refine((name) => !isReservedEnv(name), 'begins with SALLYPORT_, which is ours');

export const secretBinding = z.strictObject({
  hosts: z.array(hostName).min(1).max(20),
  port: z.number().int().min(1).max(65535),
  /** The path and what is below it; absent: all of the host. */
  path: z
    .string()
    .regex(/^\/[A-Za-z0-9._~!$&'()*+,=:@/-]*$/, 'is no plain path')
    .refine((path) => !/\/\.{0,2}(\/|$)/.test(path.replace(/\/$/, '')), 'has empty or dotted segments')
    .max(1000)
    .optional(),
  headers: z
    .array(headerName.refine((name) => !neverHeaders.has(name), 'is a header that cannot hold a secret'))
    .min(1)
    .max(5),
  /** The variables that hold the phantom inside. */
  env: z.array(envName).max(10),
  /** The start of the phantom: programs look at how a token begins. */
  prefix: z.string().regex(/^[A-Za-z0-9_-]{0,32}$/, 'is no start of a token'),
  /** Asked by GET, with the value in the first header: whether the service takes it, for `sally secret check`. */
  check_path: z
    .string()
    .regex(/^\/[A-Za-z0-9._~!$&'()*+,=:@/-]*$/, 'is no plain path')
    .max(1000)
    .optional(),
  /** The variable that holds the address of a listener inside, for programs that take one, and the path after it. */
  base_url: z.strictObject({ env: envName, path: z.string().regex(/^(\/[A-Za-z0-9._-]+)*$/) }).optional(),
});
export type SecretBinding = z.infer<typeof secretBinding>;

/** Shorter values stand in text that has nothing to do with them: they could not be masked in answers. */
export const fewestSecretCharacters = 8;

/** One line of visible characters: it becomes part of a header. */
const secretText = z
  .string()
  .regex(/^[\x21-\x7e]+$/, 'has characters that no token has (spaces, line ends, control characters)')
  .max(8192, 'is longer than 8192 characters');

export const secretValue = secretText.min(
  fewestSecretCharacters,
  `is shorter than ${fewestSecretCharacters} characters`,
);

/** Where values are kept. `auto`: where one is already, else in the keyring of the system if one answers, else in the file. */
export const secretStores = ['auto', 'keyring', 'file'] as const;
export type SecretStore = (typeof secretStores)[number];

export const secretBody = z.strictObject({
  /** Binds it as this service needs it; then no binding is given. */
  service: z.enum(knownServices).optional(),
  binding: secretBinding.partial({ port: true, env: true, prefix: true }).optional(),
  value: secretText.optional(),
  /** Run on the host for the value, which is what it prints; kept for so long. */
  command: z.array(z.string().min(1).max(4096)).min(1).max(50).optional(),
  ttl_ms: z.number().int().min(1000).max(86_400_000).optional(),
  /** So many requests of one sandbox get it; then no more. */
  budget: z.number().int().min(1).max(1_000_000_000).optional(),
  expires_at: z.iso.datetime().optional(),
  /** Of one that has its value already: a place that is named moves it. */
  store: z.enum(secretStores).optional(),
});
export type SecretBody = z.infer<typeof secretBody>;

const secretStates = ['valid', 'expiring', 'expired', 'missing', 'failing'] as const;

export const secretView = z.strictObject({
  name: z.string(),
  service: z.enum(knownServices).optional(),
  hosts: z.array(z.string()),
  port: z.number().int(),
  path: z.string().optional(),
  headers: z.array(z.string()),
  env: z.array(z.string()),
  source: z.enum(['value', 'command']),
  /** Where the value is kept; absent where a command makes it. */
  store: z.enum(['keyring', 'file']).optional(),
  budget: z.number().int().optional(),
  updated_at: z.iso.datetime(),
  expires_at: z.iso.datetime().optional(),
  /** What was left behind by a change, and how to remove it. */
  note: z.string().optional(),
});
export type SecretView = z.infer<typeof secretView>;

export const secretCheckView = z.strictObject({
  name: z.string(),
  state: z.enum(secretStates),
  /** Why, and what to do. Never a value. */
  message: z.string(),
  expires_at: z.iso.datetime().optional(),
});
export type SecretCheckView = z.infer<typeof secretCheckView>;

/** A secret as it is kept, without its value. */
export interface KeptSecret {
  readonly name: string;
  readonly service?: KnownService;
  readonly binding: SecretBinding;
  readonly source: 'value' | 'command';
  readonly store?: 'keyring' | 'file';
  readonly budget?: number;
  readonly updatedAt: string;
  readonly expiresAt?: string;
  readonly note?: string;
}

/** Absent fields of one that is there stay as they were. */
export interface SecretChange {
  readonly service?: KnownService;
  readonly binding?: SecretBinding;
  readonly value?: string;
  readonly command?: readonly string[];
  readonly ttlMs?: number;
  readonly budget?: number;
  readonly expiresAt?: string;
  readonly store?: SecretStore;
}
