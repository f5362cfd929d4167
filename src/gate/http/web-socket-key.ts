/** The proof that a server understood the wish for a WebSocket (RFC 6455 4.2.2). */

import { createHash } from 'node:crypto';

export const acceptFor = (key: string): string =>
  createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`, 'latin1').digest('base64');
