/**
 * The gate's parsers against what no honest peer sends: request heads, whole connections of them, TLS greetings, and
 * WebSocket frames of a server.
 * Whatever comes, they answer or refuse with an error of their own; what they accept means the same when it is written and read again.
 */

import { Duplex, Readable } from 'node:stream';
import type { EgressSession } from '../../src/gate/contract.ts';
import { FormAutomaton } from '../../src/gate/credentials/form-automaton.ts';
import { maskBytes } from '../../src/gate/credentials/masked-stream.ts';
import { formsOf } from '../../src/gate/credentials/secret-forms.ts';
import { parseRequestHead, writeHead } from '../../src/gate/http/head.ts';
import { MessageRoom } from '../../src/gate/http/message-room.ts';
import { relayHttp } from '../../src/gate/http/relay.ts';
import { HttpViolation } from '../../src/gate/http/violation.ts';
import { changedMessages } from '../../src/gate/http/web-socket-messages.ts';
import { parseClientHello, TlsViolation } from '../../src/gate/tls/parse-client-hello.ts';
import type { FuzzOptions } from './host.ts';
import { Random } from './random.ts';

const heads = [
  'GET / HTTP/1.1\r\nHost: a.test\r\nX: y\r\n\r\n',
  'POST http://a.test/x?y HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
  'POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello',
  'CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n',
  'GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\n\r\n',
] as const;

/** Pieces at which parsers part ways. */
const traps = [
  '\r',
  '\n',
  '\r\n',
  ' ',
  '\t',
  ':',
  '\0',
  'Host: b.test\r\n',
  'Content-Length: 3\r\n',
  '\x0b',
  ';',
] as const;

function damaged(random: Random): Buffer {
  let bytes: Buffer = Buffer.from(random.pick(heads), 'latin1');
  for (let count = random.below(3); count > 0; count--) {
    const at = random.below(bytes.length + 1);
    const trap = Buffer.from(random.pick(traps), 'latin1');
    bytes = Buffer.concat([bytes.subarray(0, at), trap, bytes.subarray(at)]);
  }
  return random.chance(2) ? random.mutate(bytes) : bytes;
}

function fuzzHead(random: Random): void {
  const bytes = damaged(random);
  const end = bytes.indexOf('\r\n\r\n');
  try {
    const head = parseRequestHead(end < 0 ? bytes : bytes.subarray(0, end + 4));
    const again = parseRequestHead(
      writeHead(`${head.method} ${head.target} HTTP/${head.version}`, head.headers),
    );
    if (JSON.stringify(again) !== JSON.stringify(head))
      throw new Error('it reads differently when written again');
    if (head.headers.fields.some(([name, value]) => /[\r\n\0]/.test(name + value)))
      throw new Error('a line end got in');
  } catch (error) {
    if (!(error instanceof HttpViolation)) throw error;
  }
}

/** Judges by `a.test` alone and is never asked for another one's connection. */
function session(): EgressSession {
  return {
    sandbox: 'fuzz',
    decide: (attempt) =>
      attempt.destination.host === 'a.test'
        ? { allowed: true, attempt, rule: 'a.test', inspect: true }
        : { allowed: false, attempt, code: 'not_allowed', reason: 'no', advice: 'none' },
    dial: ({ attempt }) => {
      if (attempt.destination.host !== 'a.test') throw new Error(`${attempt.destination.host} was dialled`);
      return Promise.resolve(server());
    },
    report: () => {},
  };
}

/** Answers at once, whatever it is asked. */
function server(): Duplex {
  const stream: Duplex = new Duplex({
    read: () => {},
    write: (_chunk, _encoding, done) => {
      done();
      stream.push('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
      stream.push(null);
    },
  });
  return stream;
}

/** A whole connection: it ends, and what comes back is HTTP. */
async function fuzzConnection(random: Random): Promise<void> {
  const out: Buffer[] = [];
  const client = new Duplex({
    read: () => {},
    write: (chunk: Buffer, _encoding, done) => {
      out.push(chunk);
      done();
    },
  });
  const relayed = relayHttp(client, session(), {
    entrance: 'http',
    scheme: 'http',
    onConnect: async (_target, stream) => void stream.destroy(),
    signal: new AbortController().signal,
  });
  for (let count = 1 + random.below(3); count > 0; count--) {
    for (const piece of random.chop(damaged(random))) client.push(piece);
  }
  client.push(null);
  await relayed;
  const text = Buffer.concat(out).toString('latin1');
  if (text !== '' && !text.startsWith('HTTP/1.1 '))
    throw new Error(`the client was told ${JSON.stringify(text.slice(0, 80))}`);
}

/** A greeting as clients send it: a name, ALPN, and an extension of GREASE. */
function hello(): Buffer {
  const block = (size: number, ...parts: Buffer[]): Buffer => {
    const content = Buffer.concat(parts);
    const length = Buffer.alloc(size);
    length.writeUIntBE(content.length, 0, size);
    return Buffer.concat([length, content]);
  };
  const name = Buffer.from('a.test');
  const extensions = block(
    2,
    Buffer.from([0x0a, 0x0a, 0, 0]),
    Buffer.from([0, 0]),
    block(2, block(2, Buffer.from([0]), block(2, name))),
    Buffer.from([0, 16]),
    block(2, block(2, block(1, Buffer.from('h2')), block(1, Buffer.from('http/1.1')))),
  );
  const body = Buffer.concat([
    Buffer.from([3, 3]),
    Buffer.alloc(32, 7),
    block(1, Buffer.alloc(32, 9)),
    block(2, Buffer.from([0x13, 0x01])),
    block(1, Buffer.from([0])),
    extensions,
  ]);
  return Buffer.concat([Buffer.from([22, 3, 1]), block(2, Buffer.from([1]), block(3, body))]);
}

function fuzzHello(random: Random): void {
  const bytes = random.chance(10) ? random.bytes(random.below(300)) : random.mutate(hello());
  try {
    const parsed = parseClientHello(bytes);
    if (parsed.state === 'whole' && parsed.facts.serverName !== undefined) {
      if (!/^[\x21-\x7e]{1,255}$/.test(parsed.facts.serverName))
        throw new Error('a strange name got through');
    }
  } catch (error) {
    if (!(error instanceof TlsViolation)) throw error;
  }
}

const secret = 'REAL-value-0123456789';
const automaton = new FormAutomaton(formsOf([secret]));

/** Messages with a secret in them, in fragments and damaged: the secret never comes through whole in a message. */
async function fuzzWebSocket(random: Random): Promise<void> {
  const frames: Buffer[] = [];
  for (let count = 1 + random.below(3); count > 0; count--) {
    const payload = Buffer.from(`${'x'.repeat(random.pick([0, 1, 120, 300]))}${secret}`);
    const cut = random.below(payload.length);
    const parts = random.chance(2) ? [payload] : [payload.subarray(0, cut), payload.subarray(cut)];
    for (const [index, part] of parts.entries()) {
      const first = (index === 0 ? 1 : 0) | (index === parts.length - 1 ? 0x80 : 0);
      const head =
        part.length < 126 ? [first, part.length] : [first, 126, part.length >> 8, part.length & 255];
      frames.push(Buffer.concat([Buffer.from(head), part]));
    }
  }
  const honest = Buffer.concat(frames);
  const isHonest = random.chance(2);
  const source = Readable.from(random.chop(isHonest ? honest : random.mutate(honest)));
  const out: Buffer[] = [];
  try {
    const messages = changedMessages(
      source,
      (payload) => {
        const shown = maskBytes(payload, automaton);
        if (shown.length !== payload.length) throw new Error('a message has another length');
        if (shown.includes(secret)) throw new Error('a message has the secret in it');
        return shown;
      },
      new MessageRoom(),
    );
    for await (const frame of messages) out.push(frame);
  } catch (error) {
    if (isHonest || !(error instanceof HttpViolation)) throw error;
  }
  if (isHonest && !Buffer.concat(out).includes('*'.repeat(secret.length)))
    throw new Error('an honest message did not come through');
}

export async function fuzzGate({ seed, cases, progress }: FuzzOptions): Promise<void> {
  if (parseClientHello(hello()).state !== 'whole')
    throw new Error('gate: the greeting of the fuzzer is wrong itself');
  for (let index = 0; index < cases; index++) {
    const own = (seed + index) >>> 0;
    const random = new Random(own);
    try {
      fuzzHead(random);
      fuzzHello(random);
      // A whole connection costs as much as some fifty heads.
      if (index % 20 === 0) await fuzzConnection(random);
      if (index % 20 === 10) await fuzzWebSocket(random);
    } catch (error) {
      throw new Error(`gate: --gate --seed=${own} --cases=1 finds it again`, { cause: error });
    }
    if (index % 10_000 === 9_999) progress?.(index + 1);
  }
}
