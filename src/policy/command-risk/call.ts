/** One simple command, as the judges of tools see it. */

import type { Listed } from './outputs.ts';
import { type Scope, scopeOf, type Whereabouts } from './paths.ts';
import { isProtectedText } from './protected-writes.ts';
import type { RuleName, Span } from './risk.ts';
import type { Arg } from './words.ts';

/** `brings`: files that the line does not name; `copies`: folders with all that is in them. */
export type Event = 'brings' | 'copies' | 'repository' | 'repository-elsewhere';

/** What a judge may do with what it finds. */
export interface Bench {
  readonly where: Whereabouts;
  report(rule: RuleName, span: Span, text: string): void;
  /** Text that a shell would run; `own`: this very shell, with its functions; `dash`: a shell that is not bash. */
  script(text: string, span: Span, how?: 'own' | 'dash'): void;
  /** For the end: what only matters together with another command of the line. */
  note(event: Event, span: Span): void;
  /** Another command that this one starts. */
  command(words: readonly Arg[], span: Span): void;
}

export class Call {
  readonly program: string;
  readonly args: readonly Arg[];
  readonly span: Span;
  /** What reaches it by a here-document, a here-string or an `echo` before it; undefined where that is not known. */
  readonly input: string | undefined;
  /** The input is a list of names below this folder. */
  readonly listed: false | Listed;
  readonly bench: Bench;

  constructor(
    bench: Bench,
    program: string,
    args: readonly Arg[],
    how: {
      readonly span: Span;
      readonly input?: string | undefined;
      readonly listed?: false | Listed;
    },
  ) {
    this.bench = bench;
    this.program = program;
    this.args = args;
    this.span = how.span;
    this.input = how.input;
    this.listed = how.listed ?? false;
  }

  /** Words before `--` that begin with a dash. */
  get options(): readonly Arg[] {
    return this.#beforeEnd().filter(({ text, known }) => known && /^-./.test(text));
  }

  /** The others. */
  get operands(): readonly Arg[] {
    const before = this.#beforeEnd();
    const behind = this.args.slice(before.length + 1);
    return [...before.filter(({ text, known }) => !known || !/^-./.test(text)), ...behind];
  }

  get first(): string {
    return this.operands[0]?.text ?? '';
  }

  /** `-r` also within `-fr`; `--recursive` also as `--recursive=yes`. */
  has(...names: readonly string[]): boolean {
    return this.options.some(({ text }) =>
      names.some((name) =>
        name.startsWith('--')
          ? text === name || text.startsWith(`${name}=`) || isShortened(text, name)
          : /^-[A-Za-z0-9]+$/.test(text) && text.includes(name.slice(1)) && !text.startsWith('--'),
      ),
    );
  }

  /** As a word of its own: tools with long options after one dash. */
  hasWord(...names: readonly string[]): boolean {
    return this.args.some(
      ({ text, known }) => known && names.some((name) => text === name || text.startsWith(`${name}=`)),
    );
  }

  /** The word after an option, or what is behind its sign. */
  valueOf(...names: readonly string[]): Arg | undefined {
    for (const [at, arg] of this.args.entries()) {
      for (const name of names) {
        if (arg.text === name) return this.args[at + 1];
        if (name.startsWith('--') && isShortened(arg.text, name)) {
          const sign = arg.text.indexOf('=');
          return sign === -1 ? this.args[at + 1] : { ...arg, text: arg.text.slice(sign + 1) };
        }
        if (!name.startsWith('--') && arg.text.startsWith(name) && arg.text.length > name.length) {
          return { ...arg, text: arg.text.slice(name.length) };
        }
      }
    }
    return undefined;
  }

  scope(arg: Arg): Scope {
    return scopeOf(arg, this.bench.where);
  }

  report(rule: RuleName, text: string, span: Span = this.span): void {
    this.bench.report(rule, span, text);
  }

  /** It writes to each of these. */
  writes(targets: readonly Arg[]): void {
    for (const target of targets) {
      const scope = this.scope(target);
      const what = `${this.program} writes to ${target.text || 'a place that is not known yet'}`;
      // A value of which only the kind is known may be any name of this folder, also one that is executed.
      if (target.glob && /[$`]/.test(target.raw)) {
        this.report('not_understood', `${what}, which shows only when it runs`, target.span);
      }
      if (scope !== 'sink' && isProtectedText(target.text, target.glob)) {
        this.report('runs_code', `${what}, which other programs execute`, target.span);
      }
      // A name like that becomes an option of the next program that gets it from a pattern.
      if (/(^|\/)-[^/]*$/.test(target.text) && target.text !== '-')
        this.report('not_understood', `${what}, a name like an option`, target.span);
      if (scope === 'here' || scope === 'all-here' || scope === 'scratch') {
        this.report('local_write', what, target.span);
      } else if (scope === 'not-known') this.report('not_understood', what, target.span);
      else if (scope === 'device') this.report('destroys', `${what}, a device`, target.span);
      else if (scope !== 'sink') this.report('system_write', `${what}, outside of this folder`, target.span);
    }
    if (targets.length === 0) this.report('local_write', `${this.program} writes`);
  }

  #beforeEnd(): readonly Arg[] {
    const end = this.args.findIndex(({ text, known }) => known && text === '--');
    return end === -1 ? this.args : this.args.slice(0, end);
  }
}

/** `--forc` for `--force`, as getopt_long takes it. In doubt it is the option. */
const isShortened = (text: string, name: string): boolean => {
  const written = text.split('=')[0] ?? '';
  return written.length > 2 && name.startsWith(written);
};

export type Judge = (call: Call) => void;
