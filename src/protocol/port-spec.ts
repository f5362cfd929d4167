/** A port inside a sandbox that this machine can reach: `BOX`, `HOST:BOX` or `IP:HOST:BOX`, host first, as Docker has it. */

import { isIPv4, isIPv6 } from 'node:net';
import { z } from 'zod';

export interface PortSpec {
  /** Absent: both loopback addresses. */
  readonly address?: string;
  /** Absent: one that is free. */
  readonly host?: number;
  readonly box: number;
}

/** Undefined: it is not written like one. */
export function parsePort(text: string): PortSpec | undefined {
  const match = /^(?:(?:(\[[0-9a-fA-F:.]+\]|[0-9.]+):)?(\d{1,5}):)?(\d{1,5})$/.exec(text.trim());
  if (match === null) return undefined;
  const address = match[1]?.replace(/^\[|\]$/g, '');
  const host = match[2] === undefined ? undefined : Number(match[2]);
  const box = Number(match[3]);
  const isAddress = address === undefined || (match[1]?.startsWith('[') ? isIPv6(address) : isIPv4(address));
  if (!isAddress || !isPort(box) || (host !== undefined && !isPort(host))) return undefined;
  return { box, ...(host === undefined ? {} : { host }), ...(address === undefined ? {} : { address }) };
}

const isPort = (port: number): boolean => port >= 1 && port <= 65535;

export function writePort({ address, host, box }: PortSpec): string {
  const shown = address?.includes(':') ? `[${address}]` : address;
  return [...(shown === undefined ? [] : [shown]), ...(host === undefined ? [] : [host]), box].join(':');
}

const wayToWrite = 'is no port; write it like 3000, 8080:3000 or 127.0.0.1:8080:3000, host first';

export const portSchema = z.union([z.string(), z.number()]).transform((value, context): PortSpec => {
  const port = parsePort(String(value));
  if (port !== undefined) return port;
  context.addIssue({ code: 'custom', message: wayToWrite });
  return z.NEVER;
});

/** Of one sandbox. Each takes two listeners of the daemon. */
export const mostPorts = 100;

export const portsSchema = z.array(portSchema).max(mostPorts);
