/** Walks a parsed script and has each of its commands judged, also those in substitutions, functions and strings. */

import {
  type Assignment,
  type Command,
  type CommandNode,
  type Function as FunctionNode,
  forEachChild,
  type ParsedScript,
  type Pipeline,
  parse,
  type Redirection,
  type SyntaxNode,
} from 'unbash';
import { allowedOf } from './allowed.ts';
import { type Bench, Call } from './call.ts';
import { fitsPattern } from './command-pattern.ts';
import { differsInDash } from './dialects.ts';
import { fillsDisk, startsForEver } from './endless.ts';
import type { Judgement } from './evaluate.ts';
import { whyRuns } from './expansions.ts';
import { kindOfList, type Listed, listsNames } from './outputs.ts';
import { scopeOf, type Whereabouts } from './paths.ts';
import { isProtectedText } from './protected-writes.ts';
import { restrictedBy } from './restricted.ts';
import type { Span } from './risk.ts';
import { findsSecret, matchesSecret, searched } from './secret-names.ts';
import { whySteers } from './steering.ts';
import { asksOnly, judgeOf, readsDeep, runsOthers } from './tools.ts';
import { Variables } from './variables.ts';
import { type Arg, type Place, printed, toArg, toArgs } from './words.ts';

/** Strings within strings within strings; nobody writes more, and each is parsed again. */
const deepest = 8;

interface Scene {
  readonly judgement: Judgement;
  readonly place: Place;
  readonly depth: number;
  /** Functions that the script defines, by the position from which on they are: their bodies are judged where they stand. */
  readonly functions: ReadonlyMap<string, number>;
  /** Their names, also where a wrapper hides them. */
  readonly defined: ReadonlySet<string>;
  readonly variables: Variables;
  /** `sh` runs it, which is not bash everywhere. */
  readonly isDash: boolean;
  where: Whereabouts;
}

interface Outer {
  readonly span?: Span;
  readonly depth?: number;
  readonly where?: Whereabouts;
  readonly functions?: ReadonlyMap<string, number>;
  readonly isDash?: boolean;
}

export function judgeScript(text: string, judgement: Judgement, outer: Outer = {}): void {
  const { span, depth = 0 } = outer;
  const place: Place = span === undefined ? ({ pos, end }) => ({ start: pos, end }) : () => span;
  const whole = span ?? { start: 0, end: text.length };
  if (depth > deepest) {
    judgement.report('not_understood', whole, 'commands within commands, too deep to follow');
    return;
  }
  const isDash = outer.isDash === true;
  if (isDash && differsInDash.test(text))
    judgement.report('not_understood', whole, 'sh reads this otherwise than bash');
  const script = parse(text);
  const functions = new Map([...(outer.functions ?? []), ...functionsOf(script)]);
  const scene: Scene = {
    judgement,
    place,
    depth,
    functions,
    defined: new Set(functions.keys()),
    variables: new Variables(script, depth > 0),
    isDash,
    where: outer.where ?? { cwd: judgement.cwd, elsewhere: false },
  };
  scene.where = whereAfter(script, scene);
  visit(script, scene, nothing);
}

/** What reaches a command by its input. */
interface Input {
  readonly text: string | undefined;
  /** Names below this folder. */
  readonly listed: false | Listed;
}
const nothing: Input = { text: undefined, listed: false };

function visit(node: SyntaxNode, scene: Scene, input: Input): void {
  if (node.type === 'Script') tellErrors(node, scene);
  if (node.type === 'Function') judgeFunction(node, scene);
  judgeEndless(node, scene);
  if (node.type === 'Pipeline') {
    visitPipeline(node, scene);
    return;
  }
  const why = whyRuns(node, scene.variables);
  if (why !== undefined) scene.judgement.report('not_understood', scene.place(node), why);
  if (node.type === 'Command') judgeCommand(node, scene, input);
  else if (node.type === 'Redirected') for (const redirect of node.redirects) judgeRedirect(redirect, scene);
  forEachChild(node, (child) => visit(child, scene, nothing));
}

function tellErrors(script: ParsedScript, { judgement, place }: Scene): void {
  for (const { message, pos } of script.errors ?? []) {
    judgement.report('not_understood', place({ pos, end: pos + 1 }), `invalid shell syntax: ${message}`);
  }
}

/** The output of an `echo` is the known input of the next stage. */
function visitPipeline(pipeline: Pipeline, scene: Scene): void {
  for (const [at, stage] of pipeline.commands.entries()) {
    const before: CommandNode | undefined = pipeline.commands[at - 1];
    const text = before?.type === 'Command' ? printed(before, scene.variables) : undefined;
    const isXargs =
      stage.type === 'Command' && /xargs$|^(env|nice|timeout|command)$/.test(stage.name?.value ?? '');
    const earlier = pipeline.commands.slice(0, at);
    const isListed = isXargs && listsNames(earlier);
    const listed = isListed && kindOfList(earlier);
    visit(stage, scene, { text, listed });
  }
}

function judgeEndless(node: SyntaxNode, { judgement, place }: Scene): void {
  if ((node.type === 'Pipeline' || node.type === 'Command') && fillsDisk(node))
    judgement.report('destroys', place(node), 'it writes until the disk is full');
  if (startsForEver(node))
    judgement.report('destroys', place(node), 'it starts programs until the machine is full');
}

/** Programs by whose output or effect others are judged. */
const reliedOn = new Set(
  'echo printf pwd which cd pushd popd chdir read ls find fd fdfind git rg grep egrep fgrep wc nproc date id sort uniq head tail tac shuf xargs env'.split(
    ' ',
  ),
);

/** A function that starts itself twice has no end: `:(){ :|:& };:`. */
function judgeFunction(node: FunctionNode, { judgement, place }: Scene): void {
  const name = node.name.value;
  let calls = 0;
  const count = (child: SyntaxNode): void => {
    if (child.type === 'Command' && child.name?.value === name) calls += 1;
    forEachChild(child, count);
  };
  count(node.body);
  if (reliedOn.has(name))
    judgement.report('not_understood', place(node), `a function in the place of ${name}`);
  if (calls > 1)
    judgement.report(
      'destroys',
      place(node),
      `${name} starts itself again and again until the machine is full`,
    );
}

/** SECURITY: only those that are surely there: defined on their own, before they are called. */
function functionsOf(script: ParsedScript): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const { command, background } of script.commands) {
    if (command.type === 'Function' && background !== true) found.set(command.name.value, command.pos);
  }
  return found;
}

/** After `cd /` a relative path is no longer one of this folder. */
function whereAfter(script: ParsedScript, scene: Scene): Whereabouts {
  let { elsewhere } = scene.where;
  const bases = [...(scene.where.bases ?? [])];
  const look = (child: SyntaxNode): void => {
    if (child.type === 'Command' && /^(cd|pushd|popd|chdir)$/.test(lastWord(child))) {
      const target = child.args.find(
        (arg) => arg.type === 'Word' && !/^-[LPe@n]+$/.test(arg.value) && !/^(cd|pushd)$/.test(arg.value),
      );
      const arg = target?.type === 'Word' ? toArg(target, scene.place, scene.variables) : undefined;
      const scope = arg === undefined ? 'home' : scopeOf(arg, scene.where);
      if (arg === undefined) bases.push('~');
      else if (arg.known && arg.text !== '-') bases.push(arg.text);
      const stays = scope === 'here' || scope === 'all-here' || scope === 'scratch';
      elsewhere ||= !stays || arg?.text === '-' || isProtectedText(arg?.text ?? '', arg?.glob);
    }
    forEachChild(child, look);
  };
  if (script.commands.length > 0) look(script);
  return { ...scene.where, elsewhere, bases };
}

/** `cd` also behind `builtin` and `command`, and behind `time`, which is a program of its own after a pipe. */
const lastWord = (command: Command): string => {
  const name = command.name?.value ?? '';
  if (!/^(builtin|command|time)$/.test(name)) return name;
  const first = command.args.find((arg) => arg.type === 'Word' && !arg.value.startsWith('-'));
  return first?.type === 'Word' ? first.value : '';
};

function judgeCommand(command: Command, scene: Scene, piped: Input): void {
  const { place, variables } = scene;
  const span = place(command);
  for (const redirect of command.redirects) judgeRedirect(redirect, scene);
  const args = command.args.flatMap((arg) =>
    arg.type === 'Word' ? toArgs(arg, place, variables) : [assigned(arg, place)],
  );
  const bench = benchOf(scene);
  for (const each of command.prefix) {
    if (each.type !== 'Assignment' || isSeparator(each, command)) continue;
    const value = each.value.type === 'Word' ? each.value.value : undefined;
    const why = whySteers(each.name, { exported: command.name !== undefined, value });
    if (why !== undefined) bench.report('runs_code', place(each), why);
  }
  if (command.name === undefined) return;
  judgeWords([...toArgs(command.name, place, variables), ...args], {
    scene,
    bench,
    span,
    pos: command.pos,
    input: inputOf(command, { scene, piped }),
  });
}

/** `IFS= read -r line`: for that one builtin, which only takes its input apart by it. */
const isSeparator = (assignment: Assignment, { name }: Command): boolean =>
  assignment.name === 'IFS' && /^(read|mapfile|readarray)$/.test(name?.value ?? '');

const assigned = (node: Assignment, place: Place): Arg => ({
  text: node.text,
  known: !/[$`]/.test(node.text),
  glob: false,
  raw: node.text,
  span: place(node),
});

/** SECURITY: redirections apply in their order, and the last one of descriptor 0 counts. With several, nothing is known. */
function inputOf(
  { redirects }: Command,
  { scene, piped }: { readonly scene: Scene; readonly piped: Input },
): Input {
  const [first, ...more] = redirects.filter(isInput);
  if (first === undefined) return piped;
  return { text: more.length > 0 ? undefined : givenText(first, scene), listed: false };
}

/** A redirection of descriptor 0, also as `0>&3`. A descriptor in a variable is never a low one. */
const isInput = ({ operator, descriptor }: Redirection): boolean =>
  descriptor === undefined
    ? operator.startsWith('<')
    : descriptor.type === 'FileDescriptor' && descriptor.value === 0;

function givenText(redirect: Redirection, scene: Scene): string | undefined {
  if (redirect.type === 'HereDoc') {
    const { body, delimiter, operator } = redirect;
    if (body.parts?.every((part) => part.type === 'Literal') === false) return undefined;
    // The shell takes backslashes and tabs away before the program reads the body.
    const isChanged =
      (delimiter?.quoted !== true && body.text.includes('\\')) ||
      (operator === '<<-' && /^\t/m.test(body.text));
    return isChanged ? undefined : body.text;
  }
  if (redirect.type !== 'HereString' || redirect.target === undefined) return undefined;
  const target = toArg(redirect.target, scene.place, scene.variables);
  return target.known && !target.glob ? target.text : undefined;
}

function benchOf(scene: Scene): Bench {
  const { judgement, depth, functions } = scene;
  return {
    get where() {
      return scene.where;
    },
    report: judgement.report,
    note: judgement.note,
    script: (text, span, how) =>
      judgeScript(text, judgement, {
        span,
        depth: depth + 1,
        where: scene.where,
        isDash: how === 'dash' || (how === 'own' && scene.isDash),
        // Another shell has none of the functions of this one.
        ...(how === 'own' ? { functions: new Map([...functions.keys()].map((name) => [name, -1])) } : {}),
      }),
    command: (words, span) => {
      const deeper = { ...scene, depth: depth + 1, functions: new Map() };
      if (deeper.depth > deepest)
        judgement.report('not_understood', span, 'commands within commands, too deep to follow');
      else judgeWords(words, { scene: deeper, bench: benchOf(deeper), span, pos: 0, input: nothing });
    },
  };
}

interface Words {
  readonly scene: Scene;
  readonly bench: Bench;
  readonly span: Span;
  readonly pos: number;
  readonly input: Input;
}

/** Where the system keeps its programs: there a name is what it says. */
const systemFolder = /^(\/usr)?(\/local)?\/s?bin\//;

function judgeWords(words: readonly Arg[], { scene, bench, span, pos, input }: Words): void {
  const { judgement } = scene;
  const [name, ...args] = words;
  if (name === undefined) return;
  if (name.text === 'unset' && args.some(({ text, known }) => !known || scene.defined.has(text)))
    bench.report('not_understood', span, 'a function is removed, and its name is then another program');
  if (!name.known || name.text === '' || name.glob) {
    bench.report(
      'not_understood',
      name.span,
      `which program ${name.raw || 'this'} is shows only when it runs`,
    );
    return;
  }
  const program = name.text.replace(systemFolder, '').replace(/\.exe$/i, '');
  const call = new Call(bench, program, args, { span, input: input.text, listed: input.listed });
  judgeLists(call, judgement);
  const defined = scene.functions.get(program);
  const isOwn = (defined !== undefined && defined < pos) || judgement.safeTools.has(program);
  const judge = judgeOf(program);
  if (isOwn && judge === undefined) judgeRestricted(pathsOf(name, args), program, scene);
  if ((isOwn && judge === undefined) || judgement.safeTools.has(program)) return;
  if (judge === undefined) {
    judgeRestricted(pathsOf(name, args), program, scene);
    if (program.includes('/'))
      bench.report('runs_code', name.span, `${program} is a program of this folder or of somewhere else`);
    else bench.report('unknown_tool', name.span, `${program} is not a program that is known here`);
    return;
  }
  const before = judgement.sentAway();
  judge(call);
  judgeAllowed(call, name, { scene, wasSentAway: judgement.sentAway() > before });
}

function judgeLists({ bench, program, args, span }: Call, { blocked, forbidden }: Judgement): void {
  for (const pattern of blocked) {
    if (fitsPattern(pattern, program, args))
      bench.report('blocked', span, `you blocked ${JSON.stringify(pattern.entry)}`);
  }
  for (const pattern of forbidden) {
    if (fitsPattern(pattern, program, args))
      bench.report('forbidden', span, `${JSON.stringify(pattern.entry)} never runs on the host`);
  }
}

/** SECURITY: what a judge found nothing wrong with runs on the host only if all of it is on the program's allow-list. */
function judgeAllowed(
  call: Call,
  name: Arg,
  { scene, wasSentAway }: { readonly scene: Scene; readonly wasSentAway: boolean },
): void {
  const { program, args } = call;
  if (runsOthers(program) || asksOnly(call)) {
    if (!runsOthers(program)) return;
    judgeRestricted(pathsOf(name, args), program, scene);
    return;
  }
  const allowed = allowedOf(program);
  const verdict = allowed?.(call);
  const { texts } = verdict ?? {};
  judgeRestricted(
    texts === undefined ? pathsOf(name, args) : args.filter((arg) => !texts.has(arg)),
    program,
    scene,
  );
  if (searched(program, args).some(findsSecret) || (program === 'ag' && args.some(isSecretName)))
    call.report('restricted_path', `${program} searches for files that hold secrets`);
  if (wasSentAway) return;
  if (verdict === undefined) call.report('not_allowed', `${program} is not known as harmless`);
  else if (verdict.problem !== undefined)
    call.report('not_allowed', verdict.problem.text, verdict.problem.arg?.span ?? call.span);
}

/** `ag -G x`: an expression for names of files. */
const isSecretName = ({ text }: Arg, at: number, args: readonly Arg[]): boolean =>
  args[at - 1]?.text === '-G' && matchesSecret(text);

/** A program that is found by its name is no path. */
const pathsOf = (name: Arg, args: readonly Arg[]): readonly Arg[] =>
  name.text.includes('/') ? [name, ...args] : args;

function judgeRestricted(words: readonly Arg[], program: string, { judgement, where }: Scene): void {
  // find alone prints names.
  const deep =
    readsDeep(program) &&
    !(/^g?find$/.test(program) && !words.some(({ text }) => /^-(exec|ok|delete|f(print|ls))/.test(text)));
  for (const word of words) {
    const entry = restrictedBy(word, { list: judgement.restrictedPaths, where, deep });
    if (entry !== undefined)
      judgement.report(
        'restricted_path',
        word.span,
        `${word.text} is ${entry} or below it, which is restricted`,
      );
  }
}

function judgeRedirect(redirect: Redirection, scene: Scene): void {
  if (redirect.type !== 'Redirect' || redirect.target === undefined) return;
  const target = toArg(redirect.target, scene.place, scene.variables);
  // 2>&1 and 2>&- name no file.
  if (/^[<>]&$/.test(redirect.operator) && /^(\d+-?|-)$/.test(target.text)) return;
  if (/^\/dev\/(tcp|udp)\//.test(target.text)) {
    scene.judgement.report('sends_out', target.span, `a connection by ${target.text}`);
    return;
  }
  judgeRestricted([target], 'cat', scene);
  if (redirect.operator === '<') {
    if (!target.known)
      scene.judgement.report('not_understood', target.span, 'which file is read shows only when it runs');
    return;
  }
  new Call(benchOf(scene), 'the shell', [], { span: scene.place(redirect) }).writes([target]);
}
