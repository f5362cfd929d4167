import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { parseSpec } from '../protocol/parse-spec.ts';
import { specSchema } from '../protocol/spec.ts';
import { initFile } from './init-file.ts';
import { specFields } from './spec-fields.ts';
import { schemaFields, specJsonSchema } from './spec-json-schema.ts';

const text = initFile('./x.json');
const lines = text.split('\n');
const isField = (line: string): boolean => /^#[a-z_]+:/.test(line);
const uncomment = (which: (line: string) => boolean): string =>
  lines.map((line) => (isField(line) && which(line) ? line.slice(1) : line)).join('\n');

describe('[A14] the file that `sally init` writes', () => {
  it('is valid as it is, and begins with the schema for editors', () => {
    expect(parseSpec(parse(text))).toEqual({ workspace: { path: '.', target: '/workspace', mode: 'live' } });
    expect(lines[0]).toBe('# yaml-language-server: $schema=./x.json');
  });

  it.each(lines.filter(isField))('is valid with %s uncommented', (line) => {
    const spec = parseSpec(parse(uncomment((other) => other === line)));
    expect(Object.keys(spec)).toHaveLength(2);
  });

  it('is valid with everything uncommented, and has every field', () => {
    const spec = parseSpec(parse(uncomment(() => true)));
    expect(Object.keys(spec).sort()).toEqual(Object.keys(specSchema.shape).sort());
  });
});

describe('the words about fields', () => {
  it('are there for every field of the schema, and for no other', () => {
    expect(specFields.map(({ field }) => field).sort()).toEqual([...schemaFields()].sort());
  });

  it('are in the schema for editors, which refuses unknown keys', () => {
    const schema = specJsonSchema() as {
      additionalProperties: unknown;
      properties: { limits: { properties: { memory: unknown }; additionalProperties: unknown } };
    };
    expect(schema.additionalProperties).toBe(false);
    expect(schema.properties.limits.additionalProperties).toBe(false);
    expect(schema.properties.limits.properties.memory).toMatchObject({
      type: ['string', 'number'],
      description: expect.stringContaining('Absent: 4g'),
    });
  });
});
