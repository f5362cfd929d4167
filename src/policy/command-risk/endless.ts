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
const endlessDevice = /^\/dev\/(zero|u?random|full)$/;
/** Programs that end, however much they could read. */
const ends = /^(head|dd|od|xxd|hexdump|timeout|cmp|sed|awk)$/;

const redirected = ({ redirects }: Command, operator: RegExp): readonly string[] =>
  redirects.flatMap((redirect) =>
    redirect.type === 'Redirect' && redirect.target !== undefined && operator.test(redirect.operator)
      ? [redirect.target.value]
      : [],
  );

const isFile = (target: string): boolean => !sinks.test(target) && !/^(\d+-?|-)$/.test(target);

const wordsOf = ({ args }: Command): readonly string[] =>
  args.flatMap((arg) => (arg.type === 'Word' ? [arg.value] : []));

/** `yes`, or a program that reads such a device. */
const givesForEver = (command: Command): boolean =>
  command.name?.value === 'yes' ||
  wordsOf(command).some((word) => endlessDevice.test(word)) ||
  redirected(command, /^<$/).some((target) => endlessDevice.test(target));

const keepsBytes = (command: Command): boolean =>
  redirected(command, /^(&?>|<>)/).some(isFile) ||
  (/^(tee|sponge|split)$/.test(command.name?.value ?? '') &&
    wordsOf(command).some((word) => !word.startsWith('-')));

const isCommand = (node: CommandNode): node is Command => node.type === 'Command';

/** `cat /dev/zero > f`, `yes | tee f`, `cp /dev/urandom f`. */
export function fillsDisk(node: Pipeline | Command): boolean {
  const stages = node.type === 'Command' ? [node] : node.commands.filter(isCommand);
  if (stages.some(({ name }) => ends.test(name?.value ?? ''))) return false;
  const copies = stages.some(
    (stage) =>
      /^(cp|install)$/.test(stage.name?.value ?? '') &&
      wordsOf(stage).some((word) => endlessDevice.test(word)),
  );
  return copies || (stages.some(givesForEver) && stages.some(keepsBytes));
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
