/**
 * `sally approvals`, `approve` and `deny`: questions of the guard, and their answers.
 *
 * SECURITY: an answer takes the approver's token. It is read from its file only where a person sits at a terminal; a program
 * without one has to be given it. So a client that asks cannot simply answer itself.
 */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readGuardEnvironment } from '../../guard/config.ts';
import { isSallyportError, SallyportError } from '../../protocol/errors.ts';
import { type Approval, Approvals } from '../../sdk/approvals.ts';
import type { DaemonClient } from '../../sdk/client.ts';
import { readClientEnvironment } from '../../sdk/config.ts';
import { askLine, askYesNo } from '../ask.ts';
import type { CliContext } from '../context.ts';
import { engineClient, engineFolders, withEachEngine } from '../engine-clients.ts';
import { exitCode } from '../exit-codes.ts';
import { note, print, printJson } from '../output.ts';
import { ago, printable, table } from '../table.ts';

/** The questions of each daemon that runs: every one has those of its own clients. */
async function eachInbox<T>(read: (approvals: Approvals) => Promise<T>): Promise<readonly T[]> {
  const found: T[] = [];
  await withEachEngine(async (client) => {
    try {
      found.push(await read(new Approvals({ client })));
    } catch (error) {
      if (!isSallyportError(error, 'daemon_unreachable')) throw error;
    }
  });
  return found;
}

/** A client of the daemon that has this question. */
async function inboxOf(id: string, signal: AbortSignal): Promise<DaemonClient> {
  for (const engine of engineFolders()) {
    const client = engineClient(engine);
    try {
      await new Approvals({ client }).get(id, signal);
      return client;
    } catch (error) {
      client.close();
      const isElsewhere =
        isSallyportError(error, 'approval_not_found') || isSallyportError(error, 'daemon_unreachable');
      if (!isElsewhere) throw error;
    }
  }
  throw new SallyportError('approval_not_found', `there is no question ${id}`, { details: { approval: id } });
}

export async function approvalsCommand(
  options: { readonly all?: true; readonly json?: true },
  { signal }: CliContext,
): Promise<number> {
  const found = (await eachInbox((inbox) => inbox.list({ all: options.all === true, signal }))).flat();
  if (options.json === true) printJson(found);
  else {
    const rows = found.map(({ id, state, class: riskClass, askedAt, command }) => [
      id,
      state,
      riskClass,
      ago(askedAt),
      listed(command),
    ]);
    for (const line of table(['ID', 'STATE', 'CLASS', 'ASKED', 'COMMAND'], rows)) print(line);
  }
  return exitCode.ok;
}

/** Of a line in the list. */
const listedCharacters = 100;
const isCut = (command: string): boolean => command.length > listedCharacters;

/** SECURITY: what is left out shows: nobody should approve the beginning of a command for the whole of it. */
function listed(command: string): string {
  if (!isCut(command)) return command;
  const left = command.length - listedCharacters;
  return `${command.slice(0, listedCharacters)}… and ${left} more characters`;
}

export interface AnswerOptions {
  readonly word?: string;
  readonly remember?: true;
  readonly json?: true;
}

export async function answerCommand(
  decision: 'approve' | 'deny',
  id: string,
  options: AnswerOptions,
  { signal }: CliContext,
): Promise<number> {
  const isTerminal = process.stdin.isTTY && process.stderr.isTTY;
  const token = await approverToken(isTerminal);
  const client = await inboxOf(id, signal);
  try {
    const approvals = new Approvals({ client });
    const approval = await approvals.get(id, signal);
    const mayAsk = decision === 'approve' && options.word === undefined && isTerminal;
    const asksWord = mayAsk && approval.needsWord;
    const asksAgain = mayAsk && !asksWord && isCut(approval.command);
    if (asksWord || asksAgain) explain(approval);
    const word = asksWord ? await askLine('Type approve to run it: ', signal) : options.word;
    if (asksAgain && !(await askYesNo('That is all of it. Run it?', signal))) {
      note(`${id} is not answered`);
      return exitCode.failed;
    }
    const answered = await approvals.answer(
      id,
      {
        decision,
        ...(word === undefined ? {} : { word }),
        ...(options.remember === true ? { remember: true } : {}),
      },
      token,
      signal,
    );
    if (options.json === true) printJson(answered);
    else note(`${id} is ${answered.state}: ${printable(answered.command)}`);
    return exitCode.ok;
  } finally {
    client.close();
  }
}

/** The question of a guarded command at the terminal that it was given at. Never rejects: an answer that failed is none. */
export async function answerInPlace(
  client: DaemonClient,
  approval: Approval,
  signal: AbortSignal,
): Promise<void> {
  try {
    const token = await approverToken(true);
    explain(approval);
    const typed = await askLine(question(approval), signal);
    // Somebody else was faster, or the command was given up.
    if (signal.aborted) return;
    const isYes = approval.needsWord ? typed === 'approve' : /^(y(es)?|approve)$/i.test(typed);
    const isForSession = approval.mayRemember && !approval.needsWord && /^s(ession)?$/i.test(typed);
    await new Approvals({ client }).answer(
      approval.id,
      {
        decision: isYes || isForSession ? 'approve' : 'deny',
        ...(approval.needsWord && isYes ? { word: typed } : {}),
        ...(isForSession ? { remember: true } : {}),
      },
      token,
    );
  } catch (error) {
    if (signal.aborted || isSallyportError(error, 'approval_over')) return;
    note(error instanceof Error ? error.message : String(error));
  }
}

function explain({ id, command, class: riskClass, reasons }: Approval): void {
  note(`${id} asks to run (${riskClass.replaceAll('_', ' ')}):`);
  note(`  ${printable(command)}`);
  for (const reason of reasons) note(`  - ${printable(reason)}`);
}

function question({ needsWord, mayRemember }: Approval): string {
  if (needsWord) return 'You approved three of this kind within a minute. Type approve to run it: ';
  return mayRemember ? 'Run it? [y/N, s: yes for this session] ' : 'Run it? [y/N] ';
}

async function approverToken(isTerminal: boolean): Promise<string> {
  const { approverToken: given } = readGuardEnvironment();
  if (given !== undefined) return given;
  if (!isTerminal) {
    throw new SallyportError('approval_refused', 'an answer takes a terminal, or the token of an approver', {
      advice:
        'Run it at a terminal, or set SALLYPORT_APPROVER_TOKEN to the content of `approver-token` in the state folder.',
    });
  }
  const file = join(readClientEnvironment().stateDir, 'approver-token');
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (cause) {
    throw new SallyportError('approval_refused', `the token of the approver cannot be read (${file})`, {
      details: { file },
      advice: 'It is made when a daemon starts: is this the state folder of the daemon that asks?',
      cause,
    });
  }
}
