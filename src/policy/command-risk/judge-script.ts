/** Walks a parsed script and has each of its commands judged, also those in substitutions, functions and strings. */

import {
  type Assignment,
  type Command,
  type Function as FunctionNode,
  forEachChild,
  type ParsedScript,
  type Pipeline,
  parse,
  type Redirection,
  type SyntaxNode,
} from 'unbash';
import { type Bench, Call } from './call.ts';
import { fitsPattern } from './command-pattern.ts';
import type { Judgement } from './evaluate.ts';
import { restrictedBy, scopeOf, type Whereabouts } from './paths.ts';
import type { Span } from './risk.ts';
import { judgeOf, onlyPrints } from './tools.ts';
import { type Arg, type Place, printed, toArg } from './words.ts';
import { judgeAssignment } from './wrappers.ts';

/** Strings within strings within strings; nobody writes more, and each is parsed anew. */
const deepest = 8;

interface Scene {
  readonly judgement: Judgement;
  readonly place: Place;
  readonly depth: number;
  /** Functions that the script defines: their bodies are judged where they stand. */
  readonly functions: Set<string>;
  where: Whereabouts;
}

export function judgeScript(
  text: string,
  judgement: Judgement,
  outer: {
    readonly span?: Span;
    readonly depth?: number;
    readonly where?: Whereabouts;
    readonly functions?: Set<string>;
  } = {},
): void {
  const { span, depth = 0 } = outer;
  const place: Place = span === undefined ? ({ pos, end }) => ({ start: pos, end }) : () => span;
  const whole = span ?? { start: 0, end: text.length };
  if (depth > deepest) {
    judgement.report('not_understood', whole, 'commands within commands, too deep to follow');
    return;
  }
  const script = parse(text);
  const scene: Scene = {
    judgement,
    place,
    depth,
    functions: outer.functions ?? new Set(),
    where: outer.where ?? { cwd: judgement.cwd, elsewhere: false },
  };
  if (leavesFolder(script, scene)) scene.where = { ...scene.where, elsewhere: true };
  collectFunctions(script, scene.functions);
  visit(script, scene, undefined);
}

function visit(node: SyntaxNode, scene: Scene, input: string | undefined): void {
  if (node.type === 'Script') tellErrors(node, scene);
  if (node.type === 'Function') judgeFunction(node, scene);
  if (node.type === 'Pipeline') {
    visitPipeline(node, scene);
    return;
  }
  if (node.type === 'Command') judgeCommand(node, scene, input);
  else if (node.type === 'Redirected') for (const redirect of node.redirects) judgeRedirect(redirect, scene);
  forEachChild(node, (child) => visit(child, scene, undefined));
}

function tellErrors(script: ParsedScript, { judgement, place }: Scene): void {
  for (const { message, pos } of script.errors ?? []) {
    judgement.report('not_understood', place({ pos, end: pos + 1 }), `no valid shell: ${message}`);
  }
}

/** What an `echo` gives to the next stage is known. */
function visitPipeline(pipeline: Pipeline, scene: Scene): void {
  let before: string | undefined;
  for (const stage of pipeline.commands) {
    visit(stage, scene, before);
    before = stage.type === 'Command' ? printed(stage) : undefined;
  }
}

/** A function that starts itself twice has no end: `:(){ :|:& };:`. */
function judgeFunction(node: FunctionNode, { judgement, place }: Scene): void {
  const name = node.name.value;
  let calls = 0;
  const count = (child: SyntaxNode): void => {
    if (child.type === 'Command' && child.name?.value === name) calls += 1;
    forEachChild(child, count);
  };
  count(node.body);
  if (calls > 1)
    judgement.report(
      'destroys',
      place(node),
      `${name} starts itself again and again until the machine is full`,
    );
}

function collectFunctions(node: SyntaxNode, names: Set<string>): void {
  if (node.type === 'Function') names.add(node.name.value);
  forEachChild(node, (child) => collectFunctions(child, names));
}

/** After `cd /` a relative path is no longer one of this folder. */
function leavesFolder(node: SyntaxNode, scene: Scene): boolean {
  let leaves = false;
  const look = (child: SyntaxNode): void => {
    if (child.type === 'Command' && /^(cd|pushd|chdir)$/.test(child.name?.value ?? '')) {
      const target = child.args.find((arg) => arg.type === 'Word' && !arg.value.startsWith('-'));
      const scope = target?.type === 'Word' ? scopeOf(toArg(target, scene.place), scene.where) : 'home';
      leaves ||= scope !== 'here' && scope !== 'all-here' && scope !== 'scratch';
    }
    forEachChild(child, look);
  };
  look(node);
  return leaves;
}

function judgeCommand(command: Command, scene: Scene, piped: string | undefined): void {
  const { place } = scene;
  const span = place(command);
  for (const redirect of command.redirects) judgeRedirect(redirect, scene);
  const args = command.args.map((arg) => (arg.type === 'Word' ? toArg(arg, place) : assigned(arg, place)));
  const assignments = command.prefix.filter((each): each is Assignment => each.type === 'Assignment');
  const bench = benchOf(scene);
  const carrier = new Call(bench, 'the command', args, { span });
  for (const each of assignments) judgeAssignment(carrier, assigned(each, place));
  if (command.name === undefined) return;
  const input = inputOf(command.redirects, place) ?? piped;
  judgeWords([toArg(command.name, place), ...args], { scene, bench, span, input });
}

const assigned = (node: Assignment, place: Place): Arg => ({
  text: node.text,
  known: !/[$`]/.test(node.text),
  glob: false,
  raw: node.text,
  span: place(node),
});

function inputOf(redirects: readonly Redirection[], place: Place): string | undefined {
  for (const redirect of redirects) {
    if (redirect.type === 'HereDoc') return redirect.body.text;
    if (redirect.type === 'HereString' && redirect.target !== undefined) {
      const target = toArg(redirect.target, place);
      return target.known ? target.text : undefined;
    }
  }
  return undefined;
}

function benchOf(scene: Scene): Bench {
  const { judgement, depth, functions } = scene;
  return {
    get where() {
      return scene.where;
    },
    report: judgement.report,
    script: (text, span) =>
      judgeScript(text, judgement, { span, depth: depth + 1, where: scene.where, functions }),
    command: (words, span) => {
      const deeper = { ...scene, depth: depth + 1 };
      if (deeper.depth > deepest)
        judgement.report('not_understood', span, 'commands within commands, too deep to follow');
      else judgeWords(words, { scene: deeper, bench: benchOf(deeper), span, input: undefined });
    },
  };
}

interface Words {
  readonly scene: Scene;
  readonly bench: Bench;
  readonly span: Span;
  readonly input: string | undefined;
}

/** Where the system keeps its programs: there a name is what it says. */
const systemFolder = /^(\/usr)?(\/local)?\/s?bin\//;

function judgeWords(words: readonly Arg[], { scene, bench, span, input }: Words): void {
  const { judgement } = scene;
  const [name, ...args] = words;
  if (name === undefined) return;
  if (!name.known || name.text === '' || name.glob) {
    bench.report(
      'not_understood',
      name.span,
      `which program ${name.raw || 'this'} is shows only when it runs`,
    );
    return;
  }
  const program = name.text.replace(systemFolder, '').replace(/\.exe$/i, '');
  const call = new Call(bench, program, args, { span, input });
  for (const pattern of judgement.blocked) {
    if (fitsPattern(pattern, program, args))
      bench.report('blocked', span, `you blocked ${JSON.stringify(pattern.entry)}`);
  }
  for (const pattern of judgement.forbidden) {
    if (fitsPattern(pattern, program, args))
      bench.report('forbidden', span, `${JSON.stringify(pattern.entry)} never runs on the host`);
  }
  if (!onlyPrints(program)) judgeRestricted([name, ...args], scene);
  if (scene.functions.has(program) || judgement.safeTools.has(program)) return;
  const judge = judgeOf(program);
  if (judge !== undefined) judge(call);
  else if (program.includes('/'))
    bench.report('runs_code', name.span, `${program} is a program of this folder or of somewhere else`);
  else bench.report('unknown_tool', name.span, `${program} is no program that is known here`);
}

function judgeRestricted(words: readonly Arg[], { judgement, where }: Scene): void {
  for (const word of words) {
    const entry = restrictedBy(word, judgement.restrictedPaths, where);
    if (entry !== undefined)
      judgement.report('restricted_path', word.span, `${word.text} is below ${entry}, which is restricted`);
  }
}

function judgeRedirect(redirect: Redirection, scene: Scene): void {
  if (redirect.type !== 'Redirect' || redirect.target === undefined) return;
  const target = toArg(redirect.target, scene.place);
  // 2>&1 and 2>&- name no file.
  if (/^[<>]&$/.test(redirect.operator) && /^(\d+|-)$/.test(target.text)) return;
  if (/^\/dev\/(tcp|udp)\//.test(target.text)) {
    scene.judgement.report('sends_out', target.span, `a connection by ${target.text}`);
    return;
  }
  judgeRestricted([target], scene);
  if (redirect.operator === '<') return;
  new Call(benchOf(scene), 'the shell', [], { span: scene.place(redirect) }).writes([target]);
}
