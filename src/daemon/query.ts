/**
 * Queries: what a route takes after the `?`, as data, so that the same table reads requests and describes them.
 *
 * Values are bytes, percent-encoded as RFC 3986 has it: a file's name need not be UTF-8, and `+` is a plus. A field that a
 * route does not know is refused, like an unknown key of a body.
 */

import { isTreePath } from '../porter/tree-records.ts';
import { SallyportError } from '../protocol/errors.ts';

export interface QueryField<T> {
  readonly description: string;
  readonly required: boolean;
  /** As JSON Schema. */
  readonly schema: Readonly<Record<string, unknown>>;
  /** All values that were given; throws a sentence without the field's name. */
  readonly read: (values: readonly Buffer[]) => T;
}

export type QueryFields = Readonly<Record<string, QueryField<unknown>>>;
export type QueryOf<Q extends QueryFields> = {
  readonly [K in keyof Q]: Q[K] extends QueryField<infer T> ? T : never;
};

class Refusal extends Error {}

const one = (values: readonly Buffer[]): Buffer | undefined => {
  if (values.length > 1) throw new Refusal('is given more than once');
  return values[0];
};

const text = (value: Buffer): string => {
  const decoded = value.toString('utf8');
  if (!Buffer.from(decoded, 'utf8').equals(value)) throw new Refusal('is no UTF-8');
  return decoded;
};

export function flag(description: string, absent: boolean): QueryField<boolean> {
  return {
    description,
    required: false,
    schema: { type: 'boolean', default: absent },
    read: (values) => {
      const value = one(values)?.toString('latin1') ?? String(absent);
      if (value !== 'true' && value !== 'false') throw new Refusal('must be true or false');
      return value === 'true';
    },
  };
}

export function whole(
  description: string,
  limits: { readonly minimum?: number; readonly maximum?: number } = {},
): QueryField<number | undefined> {
  const { minimum = 0, maximum = Number.MAX_SAFE_INTEGER } = limits;
  return {
    description,
    required: false,
    schema: { type: 'integer', minimum, maximum },
    read: (values) => {
      const value = one(values)?.toString('latin1');
      if (value === undefined) return undefined;
      const number = /^\d{1,16}$/.test(value) ? Number(value) : Number.NaN;
      if (number >= minimum && number <= maximum) return number;
      throw new Refusal(`must be a whole number from ${minimum} to ${maximum}`);
    },
  };
}

export function choice<const W extends readonly string[]>(
  description: string,
  words: W,
  absent: W[number],
): QueryField<W[number]> {
  return {
    description,
    required: false,
    schema: { type: 'string', enum: words, default: absent },
    read: (values) => {
      const value = one(values)?.toString('latin1') ?? absent;
      const word = words.find((known) => known === value) as W[number] | undefined;
      if (word === undefined) throw new Refusal(`must be one of ${words.join(', ')}`);
      return word;
    },
  };
}

export function optionalText(description: string): QueryField<string | undefined> {
  return {
    description,
    required: false,
    schema: { type: 'string' },
    read: (values) => {
      const value = one(values);
      return value === undefined ? undefined : text(value);
    },
  };
}

export function requiredText(description: string): QueryField<string> {
  return {
    description,
    required: true,
    schema: { type: 'string' },
    read: (values) => {
      const value = one(values);
      if (value === undefined || value.length === 0) throw new Refusal('is missing');
      return text(value);
    },
  };
}

export function texts(description: string): QueryField<readonly string[]> {
  return {
    description,
    required: false,
    schema: { type: 'array', items: { type: 'string' } },
    read: (values) => values.map(text),
  };
}

/** Absolute, and any bytes but NUL. */
export function path(description: string): QueryField<Buffer> {
  return {
    description: `${description} Absolute; percent-encoded bytes.`,
    required: true,
    schema: { type: 'string', format: 'byte-path' },
    read: (values) => {
      const value = one(values);
      if (value === undefined) throw new Refusal('is missing');
      if (value[0] !== 0x2f) throw new Refusal('must be absolute inside the sandbox');
      if (value.includes(0)) throw new Refusal('contains a NUL');
      if (value.length > 4095) throw new Refusal('is longer than 4095 bytes');
      return value;
    },
  };
}

/** Relative, without `.` and `..`, and any bytes but NUL. */
export function treePath(description: string): QueryField<Buffer> {
  return {
    description: `${description} Relative; percent-encoded bytes.`,
    required: true,
    schema: { type: 'string', format: 'byte-path' },
    read: (values) => {
      const value = one(values);
      if (value === undefined) throw new Refusal('is missing');
      if (!isTreePath(value)) throw new Refusal('must be relative, without empty, `.` and `..` parts');
      return value;
    },
  };
}

export function readQuery<Q extends QueryFields>(fields: Q, raw: string): QueryOf<Q> {
  const given = new Map<string, Buffer[]>();
  for (const part of raw === '' ? [] : raw.split('&')) {
    const at = part.indexOf('=');
    const name = decodeBytes(at < 0 ? part : part.slice(0, at)).toString('utf8');
    if (!Object.hasOwn(fields, name)) throw refuse(name, 'is not known here');
    const values = given.get(name) ?? [];
    values.push(decodeBytes(at < 0 ? '' : part.slice(at + 1)));
    given.set(name, values);
  }
  const read: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(fields)) {
    try {
      read[name] = field.read(given.get(name) ?? []);
    } catch (error) {
      throw error instanceof Refusal ? refuse(name, error.message) : error;
    }
  }
  return read as QueryOf<Q>;
}

function refuse(name: string, reason: string): SallyportError {
  const field = `query.${name.slice(0, 100)}`;
  return new SallyportError('request_invalid', `${field} ${reason}`, { details: { field } });
}

/** Percent-encoding to bytes; what is no code stands for itself, as in every browser. */
export function decodeBytes(encoded: string): Buffer {
  if (!encoded.includes('%')) return Buffer.from(encoded, 'utf8');
  const source = Buffer.from(encoded, 'utf8');
  const out = Buffer.allocUnsafe(source.length);
  let length = 0;
  for (let at = 0; at < source.length; at++) {
    const hex = source[at] === 0x25 ? source.toString('latin1', at + 1, at + 3) : '';
    const coded = /^[0-9a-fA-F]{2}$/.test(hex);
    out[length++] = coded ? Number.parseInt(hex, 16) : (source[at] ?? 0);
    if (coded) at += 2;
  }
  return out.subarray(0, length);
}
