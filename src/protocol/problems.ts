/** What is wrong with a value, in words a person can act on: which field, what is there, why not, and what would do. */

import type { z } from 'zod';
import { closest } from '../lib/closest.ts';

export interface Problem {
  readonly path: readonly (string | number)[];
  /** The path as people write it: `mounts.0.source`; empty for the whole. */
  readonly field: string;
  /** What is there, shortened; absent where it may be secret or says nothing. */
  readonly shown?: string;
  /** Begins with a verb. */
  readonly reason: string;
  /** It is about the name of the last field of the path, not about its value. */
  readonly aboutKey: boolean;
}

type Issue = z.core.$ZodIssue;
type Path = readonly (string | number)[];

const mostNodes = 25_000;
const mostKeys = 1000;
const mostDepth = 32;
const mostFieldsListed = 20;
const longestShown = 60;

/** Undefined: it is small enough to be looked at. Cycles end at the depth. */
export function tooLarge(value: unknown): Problem | undefined {
  let nodes = 0;
  const open: { readonly value: unknown; readonly path: Path }[] = [{ value, path: [] }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next.value !== 'object' || next.value === null) continue;
    const { path } = next;
    if (path.length >= mostDepth) return problem(path.slice(0, 3), `is nested deeper than ${mostDepth}`);
    const keys = Object.keys(next.value);
    const isList = Array.isArray(next.value);
    nodes += keys.length;
    if (!isList && keys.length > mostKeys) return problem(path, `has more than ${mostKeys} entries`);
    if (nodes > mostNodes) return problem(path, `has more than ${mostNodes} entries`);
    // Validators skip this name without a word.
    if (keys.includes('__proto__'))
      return problem([...path, '__proto__'], 'is no name for anything', { aboutKey: true });
    for (const [key, child] of Object.entries(next.value)) {
      open.push({ value: child, path: [...path, isList ? Number(key) : key] });
    }
  }
  return undefined;
}

export function problemsOf(schema: z.ZodType, value: unknown, issues: readonly Issue[]): readonly Problem[] {
  return issues.flatMap((issue) => {
    const path = issue.path.map((part) => (typeof part === 'number' ? part : String(part)));
    if (issue.code === 'unrecognized_keys') {
      const known = fieldsAt(schema, path);
      return issue.keys.map((key) => unknownField([...path, key], known));
    }
    if (issue.code === 'invalid_union') {
      const meant = meantOption(schema, path, valueAt(value, path), issue.errors);
      if (meant !== undefined) return meant.map((each) => problemBelow(path, each));
    }
    const aboutKey = issue.code === 'invalid_key';
    const found = valueAt(value, path);
    const shown = aboutKey ? undefined : shownValue(path, found);
    return [problem(path, reasonOf(issue, found), { aboutKey, shown })];
  });
}

/** What is wrong where a text or a map was possible: of the two the one that is there was meant. Undefined: neither is there. */
function meantOption(
  schema: z.ZodType,
  path: Path,
  found: unknown,
  errors: readonly (readonly Issue[])[],
): readonly Problem[] | undefined {
  const union = schemaAt(schema, path)._zod.def;
  if (union.type !== 'union') return undefined;
  const { options } = union as z.core.$ZodUnionDef;
  const isText = (type: string): boolean => type === 'string' || type === 'enum';
  const isMap = typeof found === 'object' && found !== null && !Array.isArray(found);
  const index = options.findIndex(({ _zod: { def } }) =>
    isMap ? def.type === 'object' : typeof found === 'string' && isText(def.type),
  );
  const option = options[index];
  const issues = errors[index];
  return option === undefined || issues === undefined
    ? undefined
    : problemsOf(option as z.ZodType, found, issues);
}

const problemBelow = (above: Path, { path, reason, aboutKey, shown }: Problem): Problem =>
  problem([...above, ...path], reason, { aboutKey, shown });

function problem(
  path: Path,
  reason: string,
  more: { readonly aboutKey?: boolean; readonly shown?: string | undefined } = {},
): Problem {
  return {
    path,
    field: path.map((part) => shorten(String(part))).join('.'),
    reason,
    aboutKey: more.aboutKey ?? false,
    ...(more.shown === undefined ? {} : { shown: more.shown }),
  };
}

function unknownField(path: Path, known: readonly string[]): Problem {
  const name = String(path.at(-1));
  const meant = closest(name, known);
  const wayOut =
    meant === undefined
      ? `; known are ${known.slice(0, mostFieldsListed).join(', ')}${known.length > mostFieldsListed ? ' …' : ''}`
      : `; did you mean ${meant}?`;
  return problem(path, `is no known field${wayOut}`, { aboutKey: true });
}

const plain: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map of fields',
  record: 'a map of names to values',
};

function reasonOf(issue: Issue, found: unknown): string {
  switch (issue.code) {
    case 'invalid_type':
      if (found === undefined) return `is missing; it must be ${plain[issue.expected] ?? issue.expected}`;
      return `must be ${plain[issue.expected] ?? issue.expected}${quoteHint(issue.expected, found)}`;
    case 'invalid_union':
      return `must be ${issue.errors.flatMap((options) => options.map((option) => expectedOf(option))).join(' or ')}`;
    case 'invalid_key':
      return issue.issues.map(({ message }) => message).join(', and ');
    case 'invalid_value':
      return wordsOr(
        issue.message,
        `must be ${issue.values
          .map(String)
          .join(', ')
          .replace(/, (?=[^,]*$)/, ' or ')}`,
      );
    case 'too_big':
      return `must be at most ${issue.maximum}${unitOf(issue.origin)}`;
    case 'too_small':
      return `must be at least ${issue.minimum}${unitOf(issue.origin)}`;
    default:
      return issue.message;
  }
}

/** In YAML `PORT: 8080` is a number and `DEBUG: true` is none of both. */
const quoteHint = (expected: string, found: unknown): string =>
  expected === 'string' && (typeof found === 'number' || typeof found === 'boolean') ? ', in quotes' : '';

const expectedOf = (issue: Issue): string =>
  issue.code === 'invalid_type' ? (plain[issue.expected] ?? issue.expected) : issue.message;

/** A message of ours, or other words where the schema has none. */
const wordsOr = (message: string, otherwise: string): string =>
  message.startsWith('Invalid ') ? otherwise : message;

function unitOf(origin: string): string {
  if (origin === 'string') return ' characters long';
  return origin === 'array' ? ' entries long' : '';
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((at, part) => {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, part)) return undefined;
    return (at as Readonly<Record<string | number, unknown>>)[part];
  }, value);
}

/** SECURITY: values of variables may be secrets, the value of a secret is one, and errors are logged. */
function shownValue(path: Path, value: unknown): string | undefined {
  if (path.includes('envs') || path.at(-1) === 'value' || value === undefined) return undefined;
  if (typeof value === 'string') return JSON.stringify(shorten(value));
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'a list' : 'a map';
  return String(value);
}

const shorten = (text: string): string =>
  text.length > longestShown ? `${text.slice(0, longestShown)}…` : text;

/** The fields that the schema has at this place. */
function fieldsAt(schema: z.core.$ZodType, path: Path): readonly string[] {
  const at = asMap(schemaAt(schema, path));
  return at._zod.def.type === 'object' ? Object.keys(shapeOf(at)) : [];
}

/** Of a text or a map the map: only that has fields. */
function asMap(schema: z.core.$ZodType): z.core.$ZodType {
  const { def } = schema._zod;
  if (def.type !== 'union') return schema;
  return (def as z.core.$ZodUnionDef).options.find((option) => option._zod.def.type === 'object') ?? schema;
}

function schemaAt(schema: z.core.$ZodType, path: Path): z.core.$ZodType {
  let at = unwrapped(schema);
  for (const part of path) {
    at = asMap(at);
    const { def } = at._zod;
    if (def.type === 'object') at = unwrapped(shapeOf(at)[part] ?? at);
    else if (def.type === 'array') at = unwrapped((def as z.core.$ZodArrayDef).element);
    else if (def.type === 'record') at = unwrapped((def as z.core.$ZodRecordDef).valueType);
  }
  return at;
}

const shapeOf = (schema: z.core.$ZodType): Readonly<Record<string | number, z.core.$ZodType>> =>
  (schema._zod.def as z.core.$ZodObjectDef).shape;

function unwrapped(schema: z.core.$ZodType): z.core.$ZodType {
  const { def } = schema._zod;
  const inside = ['optional', 'default', 'nullable', 'prefault', 'readonly'].includes(def.type);
  if (def.type === 'pipe') return unwrapped((def as z.core.$ZodPipeDef).in);
  return inside ? unwrapped((def as z.core.$ZodOptionalDef).innerType) : schema;
}
