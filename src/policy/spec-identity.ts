/**
 * Whether two specs ask for the same sandbox. The name is left out: it is what both were found by. Empty lists and maps
 * count as absent, because both mean none.
 */

import { createHash } from 'node:crypto';
import { canonicalJson } from '../lib/canonical-json.ts';
import type { Spec } from '../protocol/spec.ts';

export function specHash(spec: Spec): string {
  return createHash('sha256')
    .update(canonicalJson(comparable(spec)))
    .digest('hex');
}

/** The fields in which they differ, by path: `limits.memory`, `envs.TOKEN`. Never a value, as it may be a secret. */
export function specDifferences(a: Spec, b: Spec): readonly string[] {
  return differences(comparable(a), comparable(b), []);
}

function comparable(spec: Spec): unknown {
  const { name: _, ...rest } = spec;
  return Object.fromEntries(Object.entries(rest).filter(([, value]) => !isEmpty(value)));
}

function isEmpty(value: unknown): boolean {
  return (
    value === undefined || (typeof value === 'object' && value !== null && Object.keys(value).length === 0)
  );
}

function differences(a: unknown, b: unknown, path: readonly string[]): string[] {
  if (isMap(a) && isMap(b)) {
    const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])].sort();
    return keys.flatMap((key) => differences(a[key], b[key], [...path, key]));
  }
  return canonicalJson(a) === canonicalJson(b) ? [] : [path.join('.')];
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
