/**
 * Names: snake_case in YAML and on the wire, camelCase in programs, by one mechanical mapping. Maps whose keys belong to the
 * user (variables, labels, build arguments) and the details of errors stay as they are.
 */

type Camel<S extends string> = S extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : S;

/** The type with camelCase keys, all the way down. */
export type Camelled<T> = T extends readonly (infer E)[]
  ? readonly Camelled<E>[]
  : T extends object
    ? string extends keyof T
      ? T
      : { readonly [K in keyof T as K extends string ? Camel<K> : never]: Camelled<T[K]> }
    : T;

const mapsOfTheUser: ReadonlySet<string> = new Set(['args', 'envs', 'labels', 'details']);

/** Names of fields are few, and every answer has them. */
const camels = new Map<string, string>();
const mostCamels = 1000;

function toCamel(name: string): string {
  const known = camels.get(name);
  if (known !== undefined) return known;
  const camel = name.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
  if (camels.size < mostCamels) camels.set(name, camel);
  return camel;
}

const toSnake = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

export function camelled<T>(value: T): Camelled<T> {
  return rename(value, toCamel) as Camelled<T>;
}

export function snaked(value: unknown): unknown {
  return rename(value, toSnake);
}

function rename(value: unknown, name: (key: string) => string): unknown {
  if (Array.isArray(value)) return value.map((item) => rename(item, name));
  if (typeof value !== 'object' || value === null) return value;
  const renamed = Object.entries(value)
    // Absent and undefined are the same to a caller, but not to a schema.
    .filter(([, item]) => item !== undefined)
    .map(([key, item]) => [name(key), mapsOfTheUser.has(key) ? item : rename(item, name)]);
  return Object.fromEntries(renamed);
}
