import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Listener } from '../../src/porter/listener.ts';
import { connectPorter, runIn } from '../support/porter-child.ts';
import { lastingPorter } from '../support/porter-relay.ts';
import { dial } from '../support/sockets.ts';

const servfail = 2;

/** A question for the address of `name`. */
function query(id: number, name: string): Buffer {
  const labels = name.split('.').map((label) => Buffer.from([label.length, ...Buffer.from(label)]));
  const header = Buffer.from([id >> 8, id & 0xff, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
  return Buffer.concat([header, ...labels, Buffer.from([0, 0, 1, 0, 1])]);
}

/** The question as an answer that found nothing, made longer by `padding` bytes. */
function answerTo(question: Buffer, padding = 0): Buffer {
  const answer = Buffer.concat([question, Buffer.alloc(padding, 7)]);
  answer[2] = 0x81;
  answer[3] = 0x83;
  return answer;
}

const rcode = (answer: Buffer): number => (answer[3] ?? 0) & 15;
const id = (message: Buffer): number => message.readUInt16BE(0);

async function udp(): Promise<UdpSocket> {
  const socket = createSocket('udp4');
  onTestFinished(() => {
    socket.close();
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  return socket;
}

async function askUdp(socket: UdpSocket, listener: Listener, question: Buffer): Promise<Buffer> {
  const answer = new Promise<Buffer>((resolve) => {
    const onMessage = (message: Buffer): void => {
      if (id(message) !== id(question)) return;
      socket.off('message', onMessage);
      resolve(message);
    };
    socket.on('message', onMessage);
  });
  socket.send(question, listener.port, listener.address);
  return await answer;
}

/** Sends all, in pieces of `step` bytes, and resolves with as many answers. */
async function askTcp(
  listener: Listener,
  questions: readonly Buffer[],
  step = 65536,
): Promise<readonly Buffer[]> {
  const socket = await dial({ host: listener.address, port: listener.port });
  socket.setNoDelay(true);
  const framed = Buffer.concat(
    questions.flatMap((question) => [Buffer.from([question.length >> 8, question.length & 0xff]), question]),
  );
  for (let offset = 0; offset < framed.length; offset += step)
    socket.write(framed.subarray(offset, offset + step));
  const answers: Buffer[] = [];
  let pending = Buffer.alloc(0);
  return await new Promise((resolve, reject) => {
    socket.on('error', reject);
    socket.on('end', () => reject(new Error('closed')));
    socket.on('data', (chunk: Buffer) => {
      pending = Buffer.concat([pending, chunk]);
      while (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
        answers.push(pending.subarray(2, 2 + pending.readUInt16BE(0)));
        pending = pending.subarray(2 + pending.readUInt16BE(0));
      }
      if (answers.length === questions.length) resolve(answers);
    });
  });
}

const place = { host: '127.0.0.1', port: 0 };

describe('the DNS listener', () => {
  it('passes questions by UDP to the host and answers to the right asker', async () => {
    const porter = await connectPorter();
    const listener = await porter.listenDns(place, (message, transport) => {
      expect(transport).toBe('udp');
      return answerTo(message);
    });
    const sockets = await Promise.all(Array.from({ length: 20 }, () => udp()));
    const answers = await Promise.all(
      sockets.map((socket, index) => askUdp(socket, listener, query(index, `host-${index}.example`))),
    );
    for (const [index, answer] of answers.entries())
      expect(answer).toEqual(answerTo(query(index, `host-${index}.example`)));
  });

  it('takes several questions on one TCP connection, in pieces, and answers of 60 KB', async () => {
    const porter = await connectPorter();
    const listener = await porter.listenDns(place, (message, transport) => {
      expect(transport).toBe('tcp');
      return answerTo(message, 60_000);
    });
    const questions = Array.from({ length: 5 }, (_, index) => query(index, `host-${index}.example`));
    const answers = await askTcp(listener, questions, 7);
    const expected = questions.map((question) => answerTo(question, 60_000));
    expect(expected.every((one) => answers.some((answer) => answer.equals(one)))).toBe(true);
    const [largest] = await askTcp(listener, [Buffer.concat([query(9, 'large'), Buffer.alloc(4000)])]);
    expect(largest?.length).toBeGreaterThan(64_000);
  });

  it('answers SERVFAIL when the host has no answer', async () => {
    const porter = await connectPorter();
    const listener = await porter.listenDns(place, (message) => {
      if (message.includes('throws')) throw new Error('no');
      return undefined;
    });
    const socket = await udp();
    for (const name of ['nothing.example', 'throws.example']) {
      const question = query(7, name);
      const answer = await askUdp(socket, listener, question);
      expect(rcode(answer)).toBe(servfail);
      // Its own question comes back with it.
      expect(answer.subarray(12)).toEqual(question.subarray(12));
    }
  });

  it('lets 256 questions wait, and takes the others when there is room', async () => {
    const porter = await connectPorter();
    const waiting: Array<() => void> = [];
    const listener = await porter.listenDns(
      place,
      (message) => new Promise((resolve) => waiting.push(() => resolve(answerTo(message)))),
    );
    const socket = await udp();
    const outcomes = new Map<number, number>();
    const count = (code: number): number => [...outcomes.values()].filter((one) => one === code).length;
    socket.on('message', (message) => outcomes.set(id(message), rcode(message)));
    for (let index = 0; index < 300; index++) {
      socket.send(query(index, 'many.example'), listener.port, listener.address);
      // In small groups: the kernel drops datagrams that nobody has room for.
      if (index % 50 === 49) await porter.ping();
    }
    await expect.poll(() => waiting.length).toBe(256);
    expect((await runIn(porter, ['echo', 'free'])).stdout).toBe('free\n');
    expect(waiting).toHaveLength(256);
    // Over TCP nothing waits outside.
    const [refused] = await askTcp(listener, [query(999, 'more.example')]);
    expect(rcode(refused ?? Buffer.alloc(12))).toBe(servfail);
    const answerAll = async (): Promise<void> => {
      for (const [index, answer] of waiting.splice(0).entries()) {
        answer();
        // As above, for what comes back.
        if (index % 50 === 49) await porter.ping();
      }
    };
    await answerAll();
    await expect.poll(() => waiting.length).toBe(44);
    await answerAll();
    await expect.poll(() => count(3)).toBe(300);
    expect(count(servfail)).toBe(0);
    socket.send(query(1000, 'again.example'), listener.port, listener.address);
    await expect.poll(() => waiting.length).toBe(1);
  });

  it('answers SERVFAIL after 10 s to one that the host does not answer', async () => {
    const porter = await connectPorter();
    const listener = await porter.listenDns(place, () => new Promise(() => {}));
    const from = performance.now();
    expect(rcode(await askUdp(await udp(), listener, query(1, 'slow.example')))).toBe(servfail);
    expect(performance.now() - from).toBeGreaterThan(9_500);
    expect(performance.now() - from).toBeLessThan(15_000);
  });

  it('drops what is no question and goes on', async () => {
    const porter = await connectPorter();
    let asked = 0;
    const listener = await porter.listenDns(place, (message) => {
      asked++;
      return answerTo(message);
    });
    const socket = await udp();
    const junk = [
      Buffer.alloc(0),
      Buffer.alloc(11),
      answerTo(query(1, 'an.answer')),
      Buffer.alloc(5000),
      Buffer.concat([query(1, 'x').subarray(0, 12), Buffer.alloc(30, 0xff)]),
    ];
    for (const packet of junk) socket.send(packet, listener.port, listener.address);
    expect(rcode(await askUdp(socket, listener, query(2, 'real.example')))).toBe(3);
    // The last has a header and is the host's to judge.
    expect(asked).toBe(2);
    await expect(askTcp(listener, [Buffer.alloc(5)])).rejects.toThrow();
    await expect(askTcp(listener, [Buffer.alloc(5000)])).rejects.toThrow();
    expect(rcode(await askUdp(socket, listener, query(3, 'real.example')))).toBe(3);
  });

  it('serves 32 TCP connections and resets the next, until one is closed', async () => {
    const porter = await connectPorter();
    const listener = await porter.listenDns(place, (message) => answerTo(message));
    const where = { host: listener.address, port: listener.port };
    const idle = await Promise.all(Array.from({ length: 32 }, () => dial(where)));
    await porter.ping();
    await expect(askTcp(listener, [query(1, 'x.example')])).rejects.toThrow();
    for (const socket of idle) socket.destroy();
    await expect
      .poll(() =>
        askTcp(listener, [query(1, 'x.example')]).then(
          ([answer]) => answer && rcode(answer),
          () => 0,
        ),
      )
      .toBe(3);
  });

  it('is removed while running: whoever waits gets SERVFAIL', async () => {
    const porter = await connectPorter();
    let asked = (): void => {};
    const arrived = new Promise<void>((resolve) => {
      asked = resolve;
    });
    const listener = await porter.listenDns(place, () => {
      asked();
      return new Promise(() => {});
    });
    const answer = askUdp(await udp(), listener, query(5, 'waits.example'));
    await arrived;
    await listener.close();
    expect(rcode(await answer)).toBe(servfail);
    expect(await porter.listeners()).toEqual([]);
  });

  it('without a host answers SERVFAIL at once, also to who waited, and goes on with the next host', async () => {
    const { first, takeOver } = await lastingPorter();
    let asked = (): void => {};
    const arrived = new Promise<void>((resolve) => {
      asked = resolve;
    });
    const listener = await first.listenDns(place, () => {
      asked();
      return new Promise(() => {});
    });
    const socket = await udp();
    const waited = askUdp(socket, listener, query(1, 'waits.example'));
    await arrived;
    first.close();
    expect(rcode(await waited)).toBe(servfail);
    const from = performance.now();
    expect(rcode(await askUdp(socket, listener, query(2, 'nobody.example')))).toBe(servfail);
    const [byTcp] = await askTcp(listener, [query(3, 'nobody.example')]);
    expect(byTcp && rcode(byTcp)).toBe(servfail);
    // A host that is there and does not answer is waited for 10 s.
    expect(performance.now() - from).toBeLessThan(9_000);
    const second = await takeOver();
    expect(rcode(await askUdp(socket, listener, query(4, 'unclaimed.example')))).toBe(servfail);
    const [known] = await second.listeners();
    if (known === undefined) throw new Error('no listener');
    expect(known).toMatchObject({ kind: 'dns', address: '127.0.0.1', port: listener.port });
    second.resumeDns(known, (message) => answerTo(message));
    expect(rcode(await askUdp(socket, listener, query(5, 'again.example')))).toBe(3);
  });
});
