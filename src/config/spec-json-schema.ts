/** The schema of `sallyport.yaml` for editors: what may be written, before sizes and durations are understood. */

import { z } from 'zod';
import { specSchema } from '../protocol/spec.ts';
import { specFields } from './spec-fields.ts';

/** Within the package, so that it is the schema of the version that is installed. */
export const schemaPath = 'docs/schema/sallyport.schema.json';

type Json = { [key: string]: unknown };

export function specJsonSchema(): Readonly<Json> {
  const schema = z.toJSONSchema(specSchema, { io: 'input' }) as Json;
  for (const { field, meaning, absent } of specFields) {
    const at = propertyAt(schema, field.split('.'));
    if (at !== undefined) at['description'] = `${meaning} Absent: ${absent}.`;
  }
  return { ...schema, title: 'sallyport.yaml' };
}

/** The places that the schema has, as in `specFields`: `limits.memory`. Keys of maps are no fields. */
export function schemaFields(): readonly string[] {
  return fieldsBelow(specJsonSchema(), '');
}

function fieldsBelow(schema: unknown, prefix: string): readonly string[] {
  return Object.entries(propertiesOf(schema)).flatMap(([name, child]) => [
    `${prefix}${name}`,
    ...fieldsBelow(child, `${prefix}${name}.`),
  ]);
}

function propertyAt(schema: Json, path: readonly string[]): Json | undefined {
  return path.reduce<Json | undefined>((at, part) => propertiesOf(at)[part], schema);
}

function propertiesOf(schema: unknown): Readonly<Record<string, Json>> {
  if (typeof schema !== 'object' || schema === null) return {};
  const { properties, items } = schema as Json;
  return (properties ?? (items as Json | undefined)?.['properties'] ?? {}) as Record<string, Json>;
}
