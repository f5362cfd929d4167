/** What a host may have under way, each with the answer that a true porter would give. */

import { isHole } from '../../src/lib/content-hash.ts';
import { decodeExtents } from '../../src/porter/extents.ts';
import { frameType } from '../../src/porter/frame.ts';
import type { OutputSink } from '../../src/porter/output-sink.ts';
import { PayloadWriter } from '../../src/porter/payload.ts';
import type { Porter } from '../../src/porter/porter.ts';
import { isTreePath } from '../../src/porter/tree-records.ts';
import type { Tunnel } from '../../src/porter/tunnel.ts';
import type { Random } from './random.ts';
import { extents, treeRecords } from './tree-bytes.ts';

export interface Answer {
  readonly type: number;
  /** Where it is another than that of the question. */
  readonly stream?: number;
  readonly payload: Buffer;
}

/** Counts what comes out, which can never be more than went in. */
export interface Account {
  bytes: number;
}

export interface Conversation {
  /** What the host asks for; settles when that is over. */
  readonly ask: (porter: Porter, random: Random, account: Account) => Promise<unknown>;
  readonly answers: (random: Random, stream: number) => Answer[];
}

const firstPorterStream = 2 ** 31;
const nothing = Buffer.alloc(0);
const fields = (): PayloadWriter => new PayloadWriter();
const u32 = (value: number): Buffer => fields().u32(value).end();

function output(offset: number, data: Buffer): Buffer {
  return Buffer.concat([fields().u64(BigInt(offset)).end(), data]);
}

function exitPayload(stdoutBytes: number, stderrBytes: number): Buffer {
  const writer = fields().u32(0).u32(0).u64(0n).u64(0n).u64(0n).u32(0).u32(0).u32(0);
  return writer.u64(BigInt(stdoutBytes)).u64(BigInt(stderrBytes)).end();
}

const exec: Conversation = {
  ask: async (porter, _random, account) => {
    const sink: OutputSink = {
      write: async (_channel, _offset, data) => {
        account.bytes += data.length;
      },
      end: () => {},
    };
    const started = porter.exec({ argv: ['x'], env: {}, cwd: '/' }, sink);
    started.started.catch(() => {});
    await started.result;
  },
  answers: (random) => {
    if (random.chance(6)) {
      return [{ type: frameType.notStarted, payload: fields().u32(2).bytes('no such file').end() }];
    }
    const answers: Answer[] = [{ type: frameType.started, payload: u32(7) }];
    const sent = { stdout: 0, stderr: 0 };
    for (let count = random.below(6); count > 0; count--) {
      const channel = random.chance(2) ? 'stdout' : 'stderr';
      const data = random.bytes(1 + random.below(60));
      answers.push({ type: frameType[channel], payload: output(sent[channel], data) });
      sent[channel] += data.length;
    }
    if (random.chance(2)) {
      answers.push({ type: frameType.exit, payload: exitPayload(sent.stdout, sent.stderr) });
    }
    return answers;
  },
};

const execList: Conversation = {
  ask: (porter) => porter.list(),
  answers: (random) => {
    const count = random.below(3);
    const writer = fields().u32(count);
    for (let index = 0; index < count; index++) {
      writer
        .u32(index + 1)
        .u32(7)
        .u32(1 + random.below(4));
      for (let offset = 0; offset < 5; offset++) writer.u64(BigInt(random.below(1000)));
      writer.u32(65536).u64(5n);
    }
    return [{ type: frameType.execList, stream: 0, payload: writer.end() }];
  },
};

function done(random: Random, result: Buffer): Answer {
  const failed = random.chance(6);
  const payload = fields()
    .u32(failed ? 1 + random.below(140) : 0)
    .bytes(failed && random.chance(2) ? 'some/path' : failed ? nothing : result)
    .end();
  return { type: frameType.done, payload };
}

function statRecord(random: Random): Buffer {
  return fields()
    .u32(1 + random.below(4))
    .u32(random.below(0o10000))
    .u64(BigInt(random.number()))
    .u64(BigInt(random.number()) * BigInt(random.number()))
    .u32(0)
    .u32(0)
    .u64(BigInt(random.u32()))
    .u32(1)
    .end();
}

/** In pieces of any size, as porter's reads of a pipe give them. */
function data(random: Random, bytes: Buffer): Answer[] {
  return random.chop(bytes).map((payload) => ({ type: frameType.data, payload }));
}

function kindRecords(random: Random, most: number, names: readonly [string, ...string[]]): Buffer {
  const records = Array.from({ length: random.below(8) }, () =>
    fields()
      .u32(1 + random.below(most))
      .bytes(random.pick(names))
      .end(),
  );
  return Buffer.concat(records);
}

const credit = (random: Random): Answer[] =>
  random.chance(2) ? [{ type: frameType.credit, payload: u32(1 + random.below(200)) }] : [];

const stat: Conversation = {
  ask: (porter) => porter.files.stat('/a'),
  answers: (random) => [done(random, statRecord(random))],
};

const readlink: Conversation = {
  ask: (porter) => porter.files.readlink('/a'),
  answers: (random) => [done(random, fields().bytes('target').end())],
};

const remove: Conversation = {
  ask: (porter) => porter.files.remove('/a', { recursive: true }),
  answers: (random) => [done(random, fields().u64(3n).end())],
};

const directory: Conversation = {
  ask: async (porter, _random, account) => {
    for await (const { name } of porter.files.list('/a')) {
      account.bytes += name.length;
      if (name.length === 0 || name.includes('/') || name.includes(0)) throw new Error('a name that is none');
    }
  },
  answers: (random) => [
    ...data(random, kindRecords(random, 4, ['a', 'b', 'c'])),
    done(random, u32(random.chance(5) ? 1 : 0)),
  ],
};

const read: Conversation = {
  ask: async (porter, random, account) => {
    const length = random.chance(2) ? 50 : undefined;
    let got = 0;
    for await (const chunk of porter.files.read('/a', length === undefined ? {} : { length })) {
      got += chunk.length;
      account.bytes += chunk.length;
      if (got > (length ?? got)) throw new Error('more than was asked for');
      if (random.chance(20)) return;
    }
  },
  answers: (random) => [...data(random, random.bytes(random.below(60))), done(random, statRecord(random))],
};

const readExtents: Conversation = {
  ask: async (porter, random, account) => {
    for await (const piece of decodeExtents(porter.files.readExtents('/a', { length: 500 }), 0, 500)) {
      if (!isHole(piece)) account.bytes += piece.length;
      else if (piece.holeBytes > 500) throw new Error('more than was asked for');
      if (random.chance(20)) return;
    }
  },
  answers: (random) => [...data(random, extents(random)), done(random, statRecord(random))],
};

const write: Conversation = {
  ask: (porter) => porter.files.write('/a', Buffer.alloc(200)),
  answers: (random) => [...credit(random), ...credit(random), done(random, statRecord(random))],
};

const watch: Conversation = {
  ask: async (porter, _random, account) => {
    for await (const { path } of porter.files.watch('/a', { recursive: true })) account.bytes += path.length;
  },
  answers: (random) => [
    ...data(random, kindRecords(random, 6, ['', 'a', 'a/b'])),
    ...(random.chance(2) ? [done(random, nothing)] : []),
  ],
};

const putTree: Conversation = {
  ask: (porter) =>
    porter.files.putTree('/a', [
      { kind: 'directory', path: 'a' },
      { kind: 'file', path: 'a/b', body: Buffer.alloc(300) },
    ]),
  answers: (random) => [...credit(random), done(random, fields().u64(2n).end())],
};

const getTree: Conversation = {
  ask: async (porter, random, account) => {
    for await (const { path, body } of porter.files.getTree('/a')) {
      account.bytes += path.length;
      if (!isTreePath(path)) throw new Error(`a path that leads elsewhere: ${path.toString('latin1')}`);
      // Zeros may be a hole, which comes without its bytes.
      if (random.chance(2))
        for await (const chunk of body) if (chunk.some((byte) => byte !== 0)) account.bytes += chunk.length;
    }
  },
  answers: (random) => [...data(random, treeRecords(random)), done(random, fields().u64(2n).u64(0n).end())],
};

/** Uses it as somebody would: reads, writes, ends, or gives up. */
async function use(tunnel: Tunnel, random: Random, account: Account): Promise<void> {
  if (random.chance(3)) tunnel.write(Buffer.alloc(random.below(2000)));
  if (random.chance(3)) tunnel.end();
  if (random.chance(6)) {
    tunnel.destroy();
    return;
  }
  for await (const chunk of tunnel) account.bytes += (chunk as Buffer).length;
}

function tunnelAnswers(random: Random, stream: number): Answer[] {
  const answers: Answer[] = [];
  for (let count = random.below(4); count > 0; count--) {
    const payload = random.bytes(1 + random.below(50));
    answers.push({ type: frameType.streamOut, stream, payload });
  }
  if (random.chance(3)) answers.push({ type: frameType.credit, stream, payload: u32(1 + random.below(100)) });
  if (random.chance(2)) answers.push({ type: frameType.streamOut, stream, payload: nothing });
  if (random.chance(3)) answers.push({ type: frameType.resetOut, stream, payload: u32(104) });
  return answers;
}

const connect: Conversation = {
  ask: async (porter, random, account) => {
    const tunnel = await porter.connect({ host: '127.0.0.1', port: 1 });
    await use(tunnel, random, account);
  },
  answers: (random, stream) =>
    random.chance(5)
      ? [{ type: frameType.failed, payload: fields().u32(111).bytes('refused').end() }]
      : [{ type: frameType.connected, payload: nothing }, ...tunnelAnswers(random, stream)],
};

const listening = (): Answer => ({ type: frameType.listening, payload: fields().u16(80).end() });

const listen: Conversation = {
  ask: async (porter, random, account) => {
    const using: Promise<void>[] = [];
    const listener = await porter.listen({ host: '127.0.0.1', port: 80 }, (tunnel) => {
      if (random.chance(20)) throw new Error('whoever listens may fail');
      const one = use(tunnel, random, account);
      // Looked at below, when all is over.
      one.catch(() => {});
      using.push(one);
    });
    if (random.chance(3)) await listener.close();
    await porter.closed;
    await Promise.all(using);
  },
  answers: (random, listener) => {
    const answers: Answer[] = [listening()];
    for (let count = random.below(4), stream = firstPorterStream; count > 0; count--, stream++) {
      const peer = fields().u32(listener).bytes('127.0.0.1').u16(4000).end();
      answers.push({ type: frameType.accepted, stream, payload: peer }, ...tunnelAnswers(random, stream));
    }
    if (random.chance(4)) answers.push({ type: frameType.unlistened, payload: nothing });
    return answers;
  },
};

const dns: Conversation = {
  ask: async (porter, random, account) => {
    await porter.listenDns({ host: '127.0.0.1', port: 53 }, async (message) => {
      account.bytes += message.length;
      if (random.chance(4)) throw new Error('whoever answers may fail');
      return random.chance(3) ? undefined : Buffer.alloc(random.pick([0, 12, 65535, 65536]));
    });
    await porter.closed;
  },
  answers: (random, listener) => {
    const answers: Answer[] = [listening()];
    for (let count = random.below(4), stream = firstPorterStream + 50; count > 0; count--, stream++) {
      const payload = fields()
        .u32(listener)
        .u32(random.pick([1, 2]))
        .bytes(random.bytes(30))
        .end();
      answers.push({ type: frameType.question, stream, payload });
    }
    return answers;
  },
};

const listeners: Conversation = {
  ask: async (porter, random) => {
    const known = await porter.listeners();
    for (const listener of known.slice(0, 2)) {
      if (random.chance(2)) porter.resumeListener(listener, (tunnel) => tunnel.destroy());
    }
  },
  answers: (random) => {
    const count = random.below(3);
    const writer = fields().u32(count);
    for (let index = 0; index < count; index++) {
      writer
        .u32(500 + index)
        .u32(1 + random.below(3))
        .bytes('127.0.0.1')
        .u16(80);
    }
    const accepted = fields().u32(500).bytes('').u16(0).end();
    return [
      { type: frameType.listenerList, stream: 0, payload: writer.end() },
      ...(random.chance(2)
        ? [{ type: frameType.accepted, stream: firstPorterStream + 90, payload: accepted }]
        : []),
    ];
  },
};

const ping: Conversation = {
  ask: (porter) => porter.ping(),
  answers: (random) => [
    { type: frameType.notice, stream: 0, payload: fields().u32(random.below(4)).u32(9).bytes('text').end() },
    { type: frameType.pong, stream: 0, payload: u32(0) },
  ],
};

export const conversations = [
  exec,
  exec,
  execList,
  stat,
  readlink,
  remove,
  directory,
  read,
  readExtents,
  write,
  watch,
  putTree,
  getTree,
  getTree,
  connect,
  listen,
  dns,
  listeners,
  ping,
] as const;
