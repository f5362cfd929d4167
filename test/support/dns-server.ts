/** A DNS server of the test on loopback: answers by a table, and remembers what it was asked. */

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';
import { addressBytes } from '../../src/gate/dial.ts';
import { readQuestion } from '../../src/gate/dns-message.ts';
import { parseAddress } from '../../src/policy/egress/address.ts';

/** Addresses of both families; a function for answers that change; `fail` is SERVFAIL. Names that are missing do not exist. */
export type DnsTable = Readonly<Record<string, readonly string[] | (() => readonly string[]) | 'fail'>>;

export interface TestDns {
  /** As the gate takes it. */
  readonly server: string;
  /** Every name that was asked for, once a question. */
  readonly asked: string[];
}

/** Until the end of the test. Answers hold for so long. */
export async function testDns(table: DnsTable, ttlSeconds = 0): Promise<TestDns> {
  const dns = await openDns(table, ttlSeconds);
  onTestFinished(dns.close);
  return dns;
}

/** Until it is closed: for all tests of a `describe`. */
export async function openDns(
  table: DnsTable,
  ttlSeconds = 0,
): Promise<TestDns & { readonly close: () => void }> {
  const socket = createSocket('udp4');
  const asked: string[] = [];
  socket.on('message', (message, peer) => {
    const question = readQuestion(message);
    if (question === undefined || typeof question === 'number') return;
    const name = (question.name ?? '').toLowerCase();
    asked.push(name);
    socket.send(answerTo(message, question.type, table[name], ttlSeconds), peer.port, peer.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return { server: `127.0.0.1:${socket.address().port}`, asked, close: () => void socket.close() };
}

function answerTo(
  message: Buffer,
  type: number,
  entry: DnsTable[string] | undefined,
  ttlSeconds: number,
): Buffer {
  const addresses = (typeof entry === 'function' ? entry() : entry === 'fail' ? [] : (entry ?? []))
    .map(parseAddress)
    .filter((address) => address !== undefined)
    .filter(({ family }) => (type === 1 ? 4 : type === 28 ? 6 : 0) === family);
  const question = readQuestion(message);
  const bytes = typeof question === 'object' ? question.bytes : Buffer.alloc(0);
  const header = Buffer.alloc(12);
  message.copy(header, 0, 0, 2);
  header.writeUInt16BE(0x8180 | (entry === undefined ? 3 : entry === 'fail' ? 2 : 0), 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(addresses.length, 6);
  const records = addresses.map((address) => {
    const data = addressBytes(address);
    const head = Buffer.alloc(12);
    head.writeUInt16BE(0xc00c, 0);
    head.writeUInt16BE(type, 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt32BE(ttlSeconds, 6);
    head.writeUInt16BE(data.length, 10);
    return Buffer.concat([head, data]);
  });
  return Buffer.concat([header, bytes, ...records]);
}
