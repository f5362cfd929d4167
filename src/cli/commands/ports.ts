/** `sally ports` and `sally open`: what of a sandbox this machine can reach, and how to change that. */

import { pathToFileURL } from 'node:url';
import { SallyportError } from '../../protocol/errors.ts';
import type { PortView } from '../../protocol/views.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { openBrowser } from '../open-browser.ts';
import { note, print, printJson } from '../output.ts';
import { SandboxCalls } from '../sandbox-calls.ts';
import { table } from '../table.ts';

export interface PortsOptions {
  readonly publish?: readonly string[];
  readonly unpublish?: readonly number[];
  readonly json?: true;
}

export async function portsCommand(
  box: string,
  options: PortsOptions,
  { signal }: CliContext,
): Promise<number> {
  const calls = new SandboxCalls();
  try {
    for (const host of options.unpublish ?? []) await calls.unpublish(box, host, { signal });
    for (const port of options.publish ?? []) await calls.publish(box, port, { signal });
    const ports = await calls.ports(box, { signal });
    if (options.json === true) printJson({ ports });
    else for (const row of table(['HOST', 'BOX', 'ADDRESSES', 'STATE'], ports.map(rowOf))) print(row);
    return exitCode.ok;
  } finally {
    calls.close();
  }
}

function rowOf({ host, box, addresses, open }: PortView): readonly string[] {
  return [String(host), String(box), addresses.join(', '), open ? 'open' : 'closed'];
}

export interface OpenOptions {
  readonly browser?: boolean;
  readonly path?: string;
  /** Milliseconds. */
  readonly ttl?: number;
  readonly ls?: true;
  readonly revoke?: true;
  readonly json?: true;
}

/** A link that works once, in the browser of whoever asked. Nothing is published by it. */
export async function openCommand(
  box: string,
  port: number | undefined,
  options: OpenOptions,
  { signal }: CliContext,
): Promise<number> {
  const calls = new SandboxCalls();
  try {
    if (options.revoke === true) return await revoke(calls, box, port, signal);
    if (options.ls === true) return await list(calls, box, options, signal);
    const preview = await calls.openPreview(
      box,
      {
        port: await portOf(calls, box, port, signal),
        ...(options.path === undefined ? {} : { path: options.path }),
        ...(options.ttl === undefined ? {} : { ttl_ms: options.ttl }),
      },
      { signal },
    );
    if (options.json === true) printJson(preview);
    else print(preview.url ?? preview.origin);
    const { launch_file } = preview;
    const isOpened =
      options.browser !== false &&
      launch_file !== undefined &&
      (await openBrowser(pathToFileURL(launch_file).href));
    if (options.browser !== false && !isOpened) note('there is no browser to open here; the link works once');
    return exitCode.ok;
  } finally {
    calls.close();
  }
}

async function list(
  calls: SandboxCalls,
  box: string,
  { json }: OpenOptions,
  signal: AbortSignal,
): Promise<number> {
  const previews = await calls.previews(box, { signal });
  if (json === true) printJson({ previews });
  else {
    const rows = previews.map(({ box: inside, origin, sessions }) => [
      String(inside),
      origin,
      String(sessions),
    ]);
    for (const row of table(['BOX', 'ORIGIN', 'BROWSERS'], rows)) print(row);
  }
  return exitCode.ok;
}

/** All of the sandbox, or those of one port. */
async function revoke(
  calls: SandboxCalls,
  box: string,
  port: number | undefined,
  signal: AbortSignal,
): Promise<number> {
  for (const preview of await calls.previews(box, { signal })) {
    if (port === undefined || preview.box === port) await calls.endPreview(box, preview.id, { signal });
  }
  return exitCode.ok;
}

/** The port inside: the one that was named, also by the number that it is published under, or the first that is published. */
async function portOf(
  calls: SandboxCalls,
  box: string,
  port: number | undefined,
  signal: AbortSignal,
): Promise<number> {
  const ports = await calls.ports(box, { signal });
  const inside =
    port === undefined
      ? ports[0]?.box
      : ((ports.find((one) => one.box === port) ?? ports.find((one) => one.host === port))?.box ?? port);
  if (inside !== undefined) return inside;
  throw new SallyportError('usage', `sandbox ${box} publishes no port, so there is nothing to open`, {
    advice: `Say which one: \`sally open ${box} 3000\`.`,
  });
}
