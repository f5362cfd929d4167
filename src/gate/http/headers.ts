/** Header fields in their order, with the spelling that they came with. Values are Latin-1 text: one character, one byte. */

import { hopHeaders } from '../../lib/hop-headers.ts';

export type HeaderField = readonly [name: string, value: string];

export class Headers {
  readonly fields: readonly HeaderField[];

  constructor(fields: readonly HeaderField[]) {
    this.fields = fields;
  }

  all(name: string): readonly string[] {
    return this.fields.filter(([own]) => own.toLowerCase() === name).map(([, value]) => value);
  }

  get(name: string): string | undefined {
    return this.all(name)[0];
  }

  has(name: string): boolean {
    return this.fields.some(([own]) => own.toLowerCase() === name);
  }

  /** The comma-separated members of all fields of this name, in lower case. */
  tokens(name: string): readonly string[] {
    return this.all(name)
      .flatMap((value) => value.split(','))
      .map((token) => token.trim().toLowerCase())
      .filter((token) => token !== '');
  }

  without(names: ReadonlySet<string>): Headers {
    return new Headers(this.fields.filter(([name]) => !names.has(name.toLowerCase())));
  }

  with(name: string, value: string): Headers {
    return new Headers([...this.without(new Set([name.toLowerCase()])).fields, [name, value]]);
  }
}

/** The others end at the gate, which has a connection of its own on each side. */
export function endToEnd(headers: Headers): Headers {
  return headers.without(hopHeaders(headers.tokens('connection')));
}
