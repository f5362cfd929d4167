/**
 * Reads git's configuration format and says which paths of a repository git executes or obeys because of it. Pure.
 *
 * It is lenient where git ends with an error: an entry too many holds a path too many, an entry too few leaves one writable.
 */

export interface GitConfigEntry {
  /** `section.key` or `section.subsection.key`; section and key in lower case. */
  readonly name: string;
  readonly value: string;
}

export interface NamedByGit {
  /** As git writes it: relative to the work tree, or of configuration to the file that includes it; absolute; or below `~/`. */
  readonly path: string;
  /** `repository`: what `.git` points to. */
  readonly as: 'hooks' | 'configuration' | 'program' | 'repository';
}

/** Whose value is a command line or a program that everyday commands of git run. Aliases and tools are run by name. */
const runsItsValue = new RegExp(
  `^(?:${[
    'core\\.(?:fsmonitor|editor|pager|sshcommand|askpass|gitproxy|alternaterefscommand)',
    'sequence\\.editor',
    'interactive\\.difffilter',
    'diff\\.external',
    'diff\\..*\\.(?:command|textconv)',
    'filter\\..*\\.(?:clean|smudge|process)',
    'merge\\..*\\.driver',
    'gpg\\.(?:.*\\.)?program',
    'gpg\\.ssh\\.defaultkeycommand',
    'credential\\.(?:.*\\.)?helper',
    'pager\\..*',
    'hook\\..*\\.command',
    'trailer\\..*\\.(?:command|cmd)',
    'remote\\..*\\.(?:uploadpack|receivepack)',
    'submodule\\..*\\.update',
    'uploadpack\\.packobjectshook',
    'lfs\\.customtransfer\\..*\\.(?:path|args)',
  ].join('|')})$`,
  's',
);

export function namedByEntries(entries: readonly GitConfigEntry[]): readonly NamedByGit[] {
  return entries.flatMap(({ name, value }): readonly NamedByGit[] => {
    if (name === 'core.hookspath') return [{ path: value, as: 'hooks' }];
    if (name === 'include.path' || /^includeif\..*\.path$/s.test(name))
      return [{ path: value, as: 'configuration' }];
    if (!runsItsValue.test(name)) return [];
    return wordsOf(value).map((path) => ({ path, as: 'program' }));
  });
}

/** Of a command line for a shell; the value of an option is a word as well. A bare word is looked up in PATH. */
const wordsOf = (line: string): readonly string[] =>
  line.split(/[\s;|&<>()`"'!=$]+/).filter((word) => !word.startsWith('-') && /\/|.\.\w+$/.test(word));

export function parseGitConfig(text: string): readonly GitConfigEntry[] {
  const reader = new Reader(text.replace(/^\uFEFF/, '').replaceAll('\r\n', '\n'));
  return reader.entries();
}

class Reader {
  readonly #text: string;
  #at = 0;
  #section = '';

  constructor(text: string) {
    this.#text = text;
  }

  entries(): readonly GitConfigEntry[] {
    const entries: GitConfigEntry[] = [];
    while (this.#at < this.#text.length) {
      const char = this.#text[this.#at] ?? '';
      if (/\s/.test(char)) this.#at++;
      else if (char === '[') this.#section = this.#header();
      else if (/[a-z]/i.test(char)) entries.push(this.#entry());
      else this.#skipLine();
    }
    return entries;
  }

  #skipLine(): void {
    const end = this.#text.indexOf('\n', this.#at);
    this.#at = end === -1 ? this.#text.length : end + 1;
  }

  /** `[section]`, `[section "sub"]` or the old `[section.sub]`. */
  #header(): string {
    const header = /\[([^\]"\n]*)(?:"((?:[^"\\\n]|\\.)*)")?[^\]\n]*\]?/y;
    header.lastIndex = this.#at;
    const match = header.exec(this.#text);
    this.#at = header.lastIndex;
    const section = (match?.[1] ?? '').trim().toLowerCase();
    const sub = match?.[2]?.replace(/\\(.)/g, '$1');
    return sub === undefined ? section : `${section}.${sub}`;
  }

  #entry(): GitConfigEntry {
    const key = /[a-z0-9-]*[ \t]*/iy;
    key.lastIndex = this.#at;
    const name = `${this.#section}.${(key.exec(this.#text)?.[0] ?? '').trim().toLowerCase()}`;
    this.#at = key.lastIndex;
    if (this.#text[this.#at] !== '=') {
      this.#skipLine();
      return { name, value: 'true' };
    }
    this.#at++;
    return { name, value: this.#value() };
  }

  /** Quotes may begin and end anywhere in it, and a backslash at the end of a line goes on with the next. */
  #value(): string {
    let value = '';
    let isQuoted = false;
    let isComment = false;
    /** Spaces before a comment and at the end are no part of it. */
    let end = 0;
    for (; this.#at < this.#text.length; this.#at++) {
      const char = this.#text[this.#at] ?? '';
      if (char === '\n') break;
      if (isComment) continue;
      if (char === '"') {
        isQuoted = !isQuoted;
        end = value.length;
      } else if (char === '\\') {
        this.#at++;
        value += escaped(this.#text[this.#at] ?? '');
        end = value.length;
      } else if (!isQuoted && (char === '#' || char === ';')) isComment = true;
      else if (isQuoted || !/\s/.test(char)) {
        value += char;
        end = value.length;
      } else if (value !== '') value += char;
    }
    return value.slice(0, end);
  }
}

function escaped(char: string): string {
  switch (char) {
    case '\n':
      return '';
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    default:
      return char;
  }
}
