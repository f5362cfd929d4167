/** The stream to porter: a connection to the socket that it listens on, which outlives whoever connects. */

import { open, readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { SallyportError } from '../../protocol/errors.ts';
import type { BoxDoor } from '../../sandboxes/ports.ts';

const connectMs = 10_000;
const tailBytes = 4096;

export async function openDoor(folder: string, id: string): Promise<BoxDoor> {
  // By the folder's descriptor: the path of a socket may not be long, and that of a state folder may.
  const held = await open(folder, 'r');
  try {
    const socket = await connected(`/proc/self/fd/${held.fd}/door`, id);
    // What porter says on stderr is in a file; a door has none of its own.
    return Object.defineProperty(socket, 'stderrTail', { value: '' }) as Socket & {
      readonly stderrTail: string;
    };
  } finally {
    await held.close();
  }
}

async function connected(path: string, id: string): Promise<Socket> {
  const socket = connect({ path });
  try {
    await new Promise<void>((resolve, reject) => {
      socket.setTimeout(connectMs, () => reject(new Error('nobody answers')));
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
  } catch (cause) {
    socket.destroy();
    throw new SallyportError('porter_gone', `the door of box ${id} is closed`, {
      cause,
      details: { box: id },
    });
  }
  socket.setTimeout(0);
  socket.removeAllListeners('timeout');
  // A failure before anybody listens must not end the process; whoever reads meets the end of the stream.
  socket.on('error', () => {});
  return socket;
}

/** The last of what the keeper, bubblewrap or porter complained of. */
export async function lastWords(path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch(() => '');
  return text.slice(-tailBytes).trim();
}
