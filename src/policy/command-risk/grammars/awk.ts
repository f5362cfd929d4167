/** The language of awk, as far as it decides what a program does beyond printing. Pure. */

export type AwkProgram = 'prints' | 'writes' | 'runs' | 'strange';

/** Words that run programs, read other files or load code, wherever they stand: few programs have them as text. */
const running = /\bsystem\b|\bgetline\b|@[\s\\]*[A-Za-z_]/;
const token =
  /\s*(?:(#[^\n]*)|("(?:\\[\s\S]|[^"\\])*")|([A-Za-z_]\w*)|(0x[0-9a-fA-F]+|\d*\.?\d+(?:[eE][+-]?\d+)?)|(\|\||&&|\+\+|--|[<>=!+*/%^-]=|>>|\|&|[\s\S]))/y;

export function readAwk(text: string): AwkProgram {
  if (running.test(text)) return 'runs';
  // Setting them names other files to be read.
  if (/\bARG[VC]\b/.test(text)) return 'strange';
  if (!/[|>]/.test(text)) return 'prints';
  return new AwkReader(text).all();
}

class AwkReader {
  readonly #text: string;
  #at = 0;
  #depth = 0;
  /** Within a `print` or `printf`: there `>` is a file and `|` a program. */
  #prints = false;
  #printDepth = 0;
  /** The last token was a value, so a slash divides. */
  #afterValue = false;
  #afterBracket = false;
  #joins = false;
  #found: AwkProgram = 'prints';

  constructor(text: string) {
    this.#text = text;
  }

  all(): AwkProgram {
    while (this.#at < this.#text.length && this.#found !== 'strange' && this.#found !== 'runs') this.#next();
    return this.#found;
  }

  #next(): void {
    token.lastIndex = this.#at;
    const found = token.exec(this.#text);
    if (found === null) {
      this.#found = 'strange';
      return;
    }
    const [whole, comment, string, word, number, sign] = found;
    const isNewLine = /^\s*\n/.test(whole);
    // After the end of a line a slash begins an expression, and a backslash there joins two lines.
    if (sign === '/' && ((isNewLine && this.#afterValue) || this.#joins)) this.#found = 'strange';
    if (isNewLine) this.#newLine();
    this.#joins = sign === '\\';
    if (sign === '/' && !this.#afterValue) {
      this.#regularExpression(this.#at + whole.length);
      return;
    }
    // `if (x) /re/` and `(x) / y`: a closing bracket says nothing about the slash.
    if (sign === '/' && this.#afterBracket) this.#found = 'strange';
    if (sign === '"') this.#found = 'strange';
    this.#at += whole.length;
    if (comment !== undefined) return;
    this.#afterBracket = sign === ')';
    if (word !== undefined) this.#word(word);
    else if (sign !== undefined) this.#sign(sign);
    this.#afterValue =
      string !== undefined ||
      number !== undefined ||
      (word !== undefined && !/^(print|printf|return|in|if|while|else|do)$/.test(word)) ||
      (sign !== undefined && /^(\)|\]|\$|\+\+|--)$/.test(sign));
  }

  /** Behind a comma, an operator and a backslash the statement goes on. */
  #newLine(): void {
    if (this.#afterValue && this.#depth <= this.#printDepth) this.#prints = false;
  }

  #word(word: string): void {
    if (word !== 'print' && word !== 'printf') return;
    this.#prints = true;
    this.#printDepth = this.#depth;
  }

  #sign(sign: string): void {
    if (/^[([]$/.test(sign)) this.#depth += 1;
    if (/^[)\]]$/.test(sign)) this.#depth -= 1;
    if (/^[;{}]$/.test(sign)) this.#prints = false;
    if (sign === '|' || sign === '|&') this.#found = 'runs';
    if ((sign === '>' || sign === '>>') && this.#prints && this.#depth <= this.#printDepth)
      this.#found = 'writes';
    else if (sign === '>>') this.#found = 'strange';
  }

  #regularExpression(from: number): void {
    let inSet = false;
    for (let at = from; at < this.#text.length; at++) {
      const letter = this.#text[at];
      if (letter === '\\') at += 1;
      else if (letter === '[') inSet = true;
      else if (letter === ']') inSet = false;
      else if (letter === '\n') break;
      else if (letter === '/') {
        // Some versions end it within a set, others do not.
        if (inSet) break;
        this.#at = at + 1;
        this.#afterValue = true;
        this.#afterBracket = false;
        return;
      }
    }
    this.#found = 'strange';
  }
}
