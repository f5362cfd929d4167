import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { InjectedConnections } from './injected-connections.ts';

async function serving(headMs: number): Promise<() => Promise<Socket>> {
  const http = createHttpServer((_, response) => void response.end('answered'));
  http.keepAliveTimeout = 0;
  const connections = new InjectedConnections(http, headMs);
  const server = createServer(connections.take).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return async () => {
    const socket = connect(port, '127.0.0.1').setEncoding('utf8');
    onTestFinished(() => void socket.destroy());
    await once(socket, 'connect');
    return socket;
  };
}

it('[N5] a connection that brings no whole request in time is closed, and one that did may stay', async () => {
  const open = await serving(300);
  const patient = await open();
  patient.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  expect(String((await once(patient, 'data'))[0])).toContain('200 OK');
  const silent = await open();
  const slow = await open();
  slow.write('GET / HTTP/1.1\r\nHost: ');
  expect(await Promise.all([text(silent), text(slow)])).toEqual(['', '']);
  // Its time would have been over before theirs.
  expect(patient.destroyed).toBe(false);
  patient.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  expect(await text(patient)).toContain('answered');
});
