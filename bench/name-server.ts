/** A DNS server of the benchmarks: answers every name with this machine's loopback address. */

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { answerCode, questionType, readQuestion, writeAnswer } from '../src/gate/dns-message.ts';

export async function nameServer(): Promise<{ readonly server: string; readonly close: () => void }> {
  const socket = createSocket('udp4');
  socket.on('message', (message, peer) => {
    const question = readQuestion(message);
    if (question === undefined || typeof question === 'number') return;
    const address = question.type === questionType.a ? '127.0.0.1' : undefined;
    socket.send(writeAnswer(question, answerCode.ok, address), peer.port, peer.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return { server: `127.0.0.1:${socket.address().port}`, close: () => socket.close() };
}
