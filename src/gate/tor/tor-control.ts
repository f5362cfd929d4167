/**
 * The control connection to a Tor client of ours. As long as it is open Tor lives; when this process ends, however it ends, Tor ends with
 * it. It says how far Tor has come, and is asked for nothing else.
 */

import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';

export interface BootstrapPhase {
  /** 100: circuits can be built. */
  readonly percent: number;
  readonly summary: string;
}

/** Its folder is for its owner alone, so it asks for no password. */
const opening = [
  'AUTHENTICATE',
  'TAKEOWNERSHIP',
  'SETEVENTS STATUS_CLIENT',
  'GETINFO status/bootstrap-phase',
] as const;

/** Tor watches the connection from the moment in which it is told so; `failed` is called if it cannot be told. */
export function watchBootstrap(
  path: string,
  hears: { readonly phase: (phase: BootstrapPhase) => void; readonly failed: (error: Error) => void },
): Socket {
  const socket = connect({ path });
  socket.on('error', hears.failed);
  socket.write(`${opening.join('\r\n')}\r\n`);
  createInterface({ input: socket }).on('line', (line) => {
    const phase = readPhase(line);
    if (phase !== undefined) hears.phase(phase);
    else if (/^5\d\d /.test(line)) hears.failed(new Error(`Tor answered ${line}`));
  });
  return socket;
}

/** Of an event (`650 STATUS_CLIENT …`) and of the answer to the question, which are written alike. */
export function readPhase(line: string): BootstrapPhase | undefined {
  const [, percent, rest = ''] = /^(?:250|650)\S? ?.*\bBOOTSTRAP PROGRESS=(\d{1,3})\b(.*)$/.exec(line) ?? [];
  if (percent === undefined) return undefined;
  const summary = /\bSUMMARY="((?:[^"\\]|\\.)*)"/.exec(rest)?.[1] ?? '';
  return { percent: Number(percent), summary: summary.replaceAll(/\\(.)/g, '$1') };
}
