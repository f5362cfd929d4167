/** What may come next on a command line, from the same tree of verbs that parses it. */

export interface VerbTree {
  readonly commands: readonly VerbTree[];
  readonly options: readonly VerbOption[];
  readonly registeredArguments: readonly { readonly variadic: boolean; name(): string }[];
  name(): string;
  aliases(): readonly string[];
}

export interface VerbOption {
  readonly long?: string | undefined;
  readonly short?: string | undefined;
  readonly required: boolean;
  readonly hidden: boolean;
  readonly argChoices?: readonly string[] | undefined;
}

export interface Completion {
  readonly words: readonly string[];
  /** The names of sandboxes fit as well; `place` where a path in one follows. */
  readonly boxes?: 'name' | 'place';
}

/** `line`: the words after the program; the last one is being written. */
export function completeWords(root: VerbTree, line: readonly string[]): Completion {
  const before = line.slice(0, -1);
  const current = line.at(-1) ?? '';
  let verb = root;
  let operands = 0;
  let awaited: VerbOption | undefined;
  for (const word of before) {
    if (word === '--') return { words: [] };
    if (awaited !== undefined) {
      awaited = undefined;
      continue;
    }
    const next =
      operands === 0
        ? verb.commands.find((each) => each.name() === word || each.aliases().includes(word))
        : undefined;
    if (next !== undefined) verb = next;
    else if (word.startsWith('-')) {
      const option = verb.options.find(({ long, short }) => long === word || short === word);
      if (option?.required === true) awaited = option;
    } else operands++;
  }
  const fitting = (words: readonly string[]): readonly string[] =>
    words.filter((word) => word.startsWith(current));
  if (awaited !== undefined) return { words: fitting(awaited.argChoices ?? []) };
  if (current.startsWith('-')) {
    const options = verb.options.filter(({ hidden }) => !hidden);
    return { words: fitting(options.flatMap(({ long, short }) => long ?? short ?? [])) };
  }
  if (verb.commands.length > 0) {
    const names = verb.commands.flatMap((each) => [each.name(), ...each.aliases()]);
    return { words: fitting(names.filter((name) => !name.startsWith('__'))) };
  }
  return argumentWords(verb, operands, fitting);
}

const boxArguments: readonly string[] = ['box', 'boxes', 'words'];
const placeArguments: readonly string[] = ['place', 'source', 'target'];

function argumentWords(
  verb: VerbTree,
  operands: number,
  fitting: (words: readonly string[]) => readonly string[],
): Completion {
  const declared = verb.registeredArguments;
  const last = declared.at(-1);
  const argument = declared[operands] ?? (last?.variadic === true ? last : undefined);
  const name = argument?.name() ?? '';
  if (name === 'shell') return { words: fitting(['bash', 'zsh', 'fish']) };
  // What follows the first word of an exec is a command.
  if (name === 'words' && operands > 0) return { words: [] };
  if (boxArguments.includes(name)) return { words: [], boxes: 'name' };
  return placeArguments.includes(name) ? { words: [], boxes: 'place' } : { words: [] };
}
