/** Commands that have no end and fill a disk or the table of processes while they run. Pure. */

import {
  type Command,
  type CommandNode,
  type CompoundList,
  forEachChild,
  type Pipeline,
  type SyntaxNode,
} from 'unbash';
import { sinks } from './paths.ts';

/** Devices that give bytes for ever. */
export const endlessDevice = /^\/dev\/(zero|u?random|full)$/;
/** Programs that end, however much they could read. `dd` is judged by its own operands. */
const ends = /^(head|dd|cmp)$/;
/** Programs that end if they are told how much to read. */
const endsIfCounted = /^(od|xxd|hexdump)$/;
const count = /^-(\w*[Nnl]\d*|-(read-bytes|length|len)(=|$))/;

const redirected = ({ redirects }: Command, operator: RegExp): readonly string[] =>
  redirects.flatMap((redirect) =>
    redirect.type === 'Redirect' && redirect.target !== undefined && operator.test(redirect.operator)
      ? [redirect.target.value]
      : [],
  );

const isFile = (target: string): boolean => !sinks.test(target) && !/^(\d+-?|-)$/.test(target);

const wordsOf = ({ args }: Command): readonly string[] =>
  args.flatMap((arg) => (arg.type === 'Word' ? [arg.value] : []));

/** Behind those that only start another program. */
function programOf(command: Command): string {
  const words = [command.name?.value ?? '', ...wordsOf(command)];
  const isOwn = (word: string): boolean =>
    /^(env|nice|nohup|stdbuf|command|exec|ionice|builtin|time|timeout|sudo)$/.test(word) ||
    /^(-|\w+=|\d+[smhd]?$)/.test(word);
  return words.find((word) => !isOwn(word)) ?? '';
}

/** `yes`, or a program that reads such a device. */
const givesForEver = (command: Command): boolean =>
  programOf(command) === 'yes' ||
  wordsOf(command).some((word) => endlessDevice.test(word)) ||
  redirected(command, /^<$/).some((target) => endlessDevice.test(target));

const keepsBytes = (command: Command): boolean =>
  redirected(command, /^(&?>|<>)/).some(isFile) ||
  (/^(tee|sponge|split)$/.test(programOf(command)) && wordsOf(command).some((word) => !word.startsWith('-')));

function endsByItself(command: Command): boolean {
  const program = programOf(command);
  return (
    ends.test(program) || (endsIfCounted.test(program) && wordsOf(command).some((word) => count.test(word)))
  );
}

const isCommand = (node: CommandNode): node is Command => node.type === 'Command';

/** `cat /dev/zero > f`, `yes | tee f`. */
export function fillsDisk(node: Pipeline | Command): boolean {
  const stages = node.type === 'Command' ? [node] : node.commands.filter(isCommand);
  const source = stages.findLastIndex(givesForEver);
  const follow = source === -1 ? [] : stages.slice(source);
  return follow.some(keepsBytes) && !follow.some(endsByItself);
}

/** `while true; do x & done`. */
export function startsForEver(node: SyntaxNode): boolean {
  switch (node.type) {
    case 'While':
      return (
        isConstant(node.clause, node.kind === 'until' ? /^false$/ : /^(true|:)$/) && hasBackground(node.body)
      );
    case 'ArithmeticFor':
      return node.test === undefined && hasBackground(node.body);
    default:
      return false;
  }
}

function isConstant({ commands }: CompoundList, name: RegExp): boolean {
  const [only, ...more] = commands;
  return more.length === 0 && only?.command.type === 'Command' && name.test(only.command.name?.value ?? '');
}

function hasBackground(body: SyntaxNode): boolean {
  let found = false;
  const look = (node: SyntaxNode): void => {
    if (node.type === 'Statement' && node.background === true) found = true;
    forEachChild(node, look);
  };
  look(body);
  return found;
}
