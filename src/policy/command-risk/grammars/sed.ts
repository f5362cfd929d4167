/** The language of sed, as far as it decides what a script does: which of its commands run a program, write or read a file. Pure. */

export interface SedScript {
  /** Runs a program: `e`, or `s` with the flag `e`. */
  readonly runs: boolean;
  /** Files of `w`, `W` and the flag `w`. */
  readonly writes: readonly string[];
  /** Files of `r` and `R`. */
  readonly reads: readonly string[];
  /** Not understood: the rest of it may be anything. */
  readonly strange: boolean;
}

export function readSed(text: string): SedScript {
  const reader = new SedReader(text);
  reader.all();
  return reader;
}

class SedReader implements SedScript {
  readonly #text: string;
  #at = 0;
  runs = false;
  strange = false;
  readonly writes: string[] = [];
  readonly reads: string[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  all(): void {
    while (!this.strange) {
      this.#skip(/[\s;{}]*/y);
      if (this.#at >= this.#text.length) return;
      this.#address();
      this.#command();
    }
  }

  #skip(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0] ?? '';
    this.#at += found.length;
    return found;
  }

  #address(): void {
    for (let count = 0; count < 2; count++) {
      const letter = this.#text[this.#at];
      if (letter === '/') this.#delimited(1, '/');
      else if (letter === '\\') this.#delimited(2, this.#text[this.#at + 1]);
      else this.#skip(/\$|[0-9]+(~[0-9]+)?|[+~][0-9]+/y);
      this.#skip(/[IM]*/y);
      this.#skip(/\s*/y);
      if (this.#text[this.#at] !== ',') break;
      this.#at += 1;
      this.#skip(/\s*/y);
    }
    this.#skip(/[\s!]*/y);
  }

  /** From behind the first delimiter to behind the next one that no backslash takes away. */
  #delimited(skip: number, delimiter: string | undefined): void {
    this.#at += skip;
    if (delimiter === undefined || delimiter === '\n' || delimiter === '\\') {
      this.strange = true;
      return;
    }
    for (; this.#at < this.#text.length; this.#at++) {
      const letter = this.#text[this.#at];
      if (letter === '\\') this.#at += 1;
      else if (letter === delimiter) {
        this.#at += 1;
        return;
      }
    }
    this.strange = true;
  }

  #command(): void {
    const letter = this.#text[this.#at] ?? '';
    this.#at += 1;
    if (/[{}]/.test(letter)) return;
    if (/[=dDgGhHnNpPxzF]/.test(letter)) this.#end();
    else if (/[lqQL]/.test(letter)) {
      this.#skip(/\s*\d*/y);
      this.#end();
    } else if (letter === '#') this.#skip(/[^\n]*/y);
    else if (/[aic]/.test(letter)) this.#skip(/(?:\\[\s\S]|[^\n\\])*/y);
    // SECURITY: some versions end a label at a blank, others at the end of the line. Only what all of them take is known.
    else if (/[btTv:]/.test(letter)) {
      this.#skip(/[ \t]*[^\s;}]*/y);
      this.#end();
    } else if (/[wW]/.test(letter)) this.writes.push(this.#file());
    else if (/[rR]/.test(letter)) this.reads.push(this.#file());
    else if (letter === 'e') {
      this.runs = true;
      this.#skip(/[^\n]*/y);
    } else if (letter === 'y' || letter === 's') this.#substitution(letter);
    else this.strange = true;
  }

  #substitution(letter: string): void {
    const delimiter = this.#text[this.#at];
    this.#delimited(1, delimiter);
    if (!this.strange) this.#delimited(0, delimiter);
    if (this.strange) return;
    if (letter === 's') {
      const flags = this.#skip(/[gpiIemM0-9]*/y);
      if (flags.includes('e')) this.runs = true;
      if (this.#text[this.#at] === 'w') {
        this.#at += 1;
        this.writes.push(this.#file());
      }
    }
    this.#end();
  }

  #file(): string {
    return this.#skip(/[^\n]*/y).trim();
  }

  #end(): void {
    this.#skip(/[ \t\r]*/y);
    if (this.#at < this.#text.length && !/[;\n}#]/.test(this.#text[this.#at] ?? '')) this.strange = true;
  }
}
