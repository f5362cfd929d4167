/** `host` and `host:port` as they stand in Host, in a URL or after CONNECT. The reading itself is policy's, for every entrance the same. */

import { parseAuthority } from '../../policy/egress/host.ts';
import type { Destination } from '../contract.ts';
import { HttpViolation } from './violation.ts';

/** Without a default the port has to be there, as with CONNECT. */
export function readAuthority(text: string, defaultPort?: number): Destination {
  const read = parseAuthority(text, defaultPort);
  if ('problem' in read) throw new HttpViolation('host_invalid', `the host ${read.problem}`);
  return read;
}

export const writeAuthority = ({ host, port }: Destination, defaultPort: number): string => {
  const name = host.includes(':') ? `[${host}]` : host;
  return port === defaultPort ? name : `${name}:${port}`;
};

export const sameDestination = (a: Destination, b: Destination): boolean =>
  a.host === b.host && a.port === b.port;
