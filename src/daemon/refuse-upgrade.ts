/** Answers a request for a WebSocket that is refused. */

import type { Duplex } from 'node:stream';

/**
 * SECURITY: the whole connection ends, not this half alone: a stranger that keeps the other half open would hold a place of the port.
 */
export function refuseUpgrade(client: Duplex, status: number, json = ''): void {
  const type = json === '' ? '' : 'content-type: application/json\r\n';
  client.once('finish', () => client.destroy());
  client.end(
    `HTTP/1.1 ${status} Refused\r\n${type}connection: close\r\ncontent-length: ${Buffer.byteLength(json)}\r\n\r\n${json}`,
  );
}
