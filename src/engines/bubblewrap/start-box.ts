/** Starts the keeper of a box, which becomes bubblewrap, and waits until porter inside says that it listens. */

import { type ChildProcess, spawn } from 'node:child_process';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { SallyportError } from '../../protocol/errors.ts';
import type { BoxLine } from './box-arguments.ts';
import { lastWords } from './box-door.ts';

const startMs = 20_000;

export interface Programs {
  readonly keeper: string;
  readonly bubblewrap: string;
}

export async function startBox(
  { keeper, bubblewrap }: BoxLine,
  programs: Programs,
  { id, folder }: { readonly id: string; readonly folder: string },
): Promise<void> {
  const complaints = join(folder, 'stderr');
  const stderr = await open(complaints, 'w', 0o600);
  try {
    const child = spawn(programs.keeper, [...keeper, '--', programs.bubblewrap, ...bubblewrap], {
      // It has the folder and nothing else of the daemon's; it outlives it.
      stdio: ['ignore', 'pipe', stderr.fd],
      env: {},
      cwd: '/',
      detached: true,
    });
    const ended = await listensOrEnded(child);
    child.stdout?.destroy();
    child.unref();
    if (ended !== undefined) throw await failure(id, ended, complaints);
  } finally {
    await stderr.close();
  }
}

/** Undefined: it listens. */
async function listensOrEnded(child: ChildProcess): Promise<string | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const ended = await new Promise<string | undefined>((resolve) => {
    child.stdout?.once('data', () => resolve(undefined));
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) => resolve(`it ended with ${code ?? signal}`));
    timer = setTimeout(() => resolve(`it did not listen within ${startMs / 1000} s`), startMs);
  });
  clearTimeout(timer);
  return ended;
}

async function failure(id: string, ended: string, complaints: string): Promise<SallyportError> {
  const words = await lastWords(complaints);
  const isClosed = /namespace|uid map|uid_map|setting up/i.test(words);
  return new SallyportError('engine_failed', `bubblewrap did not start box ${id}: ${ended}: ${words}`, {
    details: { box: id },
    advice: isClosed
      ? 'User namespaces may be closed to this user; `sally doctor` says more.'
      : 'The message is of bubblewrap or of its keeper; `sally doctor` looks at this machine.',
  });
}
