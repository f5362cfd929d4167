/** A guarded command in its two forms: the text that is judged, and the words that run. Both say the same. Pure. */

import { SallyportError } from '../protocol/errors.ts';

export interface GuardedInput {
  readonly command?: string | undefined;
  readonly argv?: readonly string[] | undefined;
  readonly tool?: string | undefined;
  readonly args?: unknown;
}

export interface GuardedCommand {
  /** As a shell would read it. */
  readonly text: string;
  /** Absent: the text needs a shell. */
  readonly argv?: readonly string[];
}

/** Tools of agents that run a line of shell, whatever they are called. */
const shellTools = new Set([
  'bash',
  'sh',
  'shell',
  'execute_cli',
  'execute',
  'run_command',
  'terminal',
  'exec',
]);

export function readGuarded({ command, argv, tool, args }: GuardedInput): GuardedCommand {
  const given = [command, argv, tool].filter((one) => one !== undefined).length;
  if (given !== 1) throw invalid('one of command, argv and tool is needed, and only one');
  if (tool === undefined && args !== undefined) throw invalid('args belongs to tool');
  if (command !== undefined) return { text: command };
  if (argv !== undefined) return fromWords(argv);
  return fromTool(tool ?? '', args);
}

/** A shell's tool is its command. Any other is a program of that name: a list is its words, else it gets the JSON as it is. */
function fromTool(tool: string, args: unknown): GuardedCommand {
  if (shellTools.has(tool) && typeof args === 'object' && args !== null) {
    const { command, cmd } = args as Readonly<Record<string, unknown>>;
    const line = command ?? cmd;
    if (typeof line === 'string' && line !== '') return { text: line };
    if (Array.isArray(line) && line.every((word) => typeof word === 'string')) return fromWords(line);
    throw invalid(`the tool ${tool} needs args with a command`);
  }
  if (args === undefined) return fromWords([tool]);
  if (Array.isArray(args) && args.every((word) => typeof word === 'string')) {
    return fromWords([tool, ...(args as readonly string[])]);
  }
  return fromWords([tool, JSON.stringify(args)]);
}

function fromWords(argv: readonly string[]): GuardedCommand {
  if (argv.length === 0 || argv[0] === '') throw invalid('there is no command');
  return { text: argv.map(quoted).join(' '), argv };
}

/** Only what no shell would read otherwise stays bare. */
const quoted = (word: string): string =>
  /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) && !/^[^/]*=/.test(word)
    ? word
    : `'${word.replaceAll("'", "'\\''")}'`;

const invalid = (message: string): SallyportError =>
  new SallyportError('request_invalid', `the command to be guarded: ${message}`, {
    advice: 'Give a line of shell, a list of words, or a tool with its args.',
  });
