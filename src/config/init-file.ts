/** The text of a new `sallyport.yaml`: every field as a comment, ready to be uncommented. A line `#field: …` is one. */

import { specFields } from './spec-fields.ts';

/** The fields that most projects want are not comments. */
const set: Readonly<Record<string, string>> = { workspace: '{ path: ., mode: live }' };

/** `schema`: where editors find the schema, a path or a URL. */
export function initFile(schema: string): string {
  const fields = specFields
    .filter(({ field }) => !field.includes('.'))
    .map(({ field, meaning, absent, example }) => {
      const value = set[field];
      const line = value === undefined ? `#${field}: ${example}` : `${field}: ${value}`;
      return `${comment(meaning)}\n${comment(`Absent: ${absent}.`)}\n${line}\n`;
    });
  return `# yaml-language-server: $schema=${schema}

# What a sandbox of this folder is. Remove the # before a field to set it.
# Whoever uses this file is asked once whether it may have what it asks for.
# Every field: docs/spec.md of Sallyport.

${fields.join('\n')}`;
}

const widest = 100;

function comment(text: string): string {
  const lines: string[] = [];
  let line = '#';
  for (const word of text.split(' ')) {
    if (line.length + word.length >= widest) {
      lines.push(line);
      line = '#';
    }
    line += ` ${word}`;
  }
  return [...lines, line].join('\n');
}
