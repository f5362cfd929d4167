/** Who may hold connections of the DevTools port. `test/integration/devtools.test.ts` has the access rules, with a sandbox. */

import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { until } from '../../../test/support/until.ts';
import { DevToolsDoor } from './devtools-door.ts';

/** As many as the port takes at a time. */
const everyPlace = 256;
const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n';

/** A door to a program that answers each connection with the same text. */
async function openDoor() {
  const program = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'));
  }).listen(0, '127.0.0.1');
  await once(program, 'listening');
  const { port: inside } = program.address() as AddressInfo;
  const door = await DevToolsDoor.open({
    connect: async () => {
      const socket = connect(inside, '127.0.0.1');
      await once(socket, 'connect');
      return socket;
    },
  });
  onTestFinished(() => {
    door.close();
    program.close();
  });
  const { port } = door;
  /** To the end of what comes. Its own half stays open for as long as the test. */
  const ask = (request: string, bodyEveryMs?: number): Promise<string> =>
    new Promise((resolve) => {
      const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).setEncoding('latin1');
      let answer = '';
      client.on('data', (text) => {
        answer += text;
      });
      client.once('end', () => resolve(answer)).once('error', () => resolve(answer));
      client.write(request);
      const body = bodyEveryMs === undefined ? undefined : setInterval(() => client.write('x'), bodyEveryMs);
      client.once('close', () => clearInterval(body));
      onTestFinished(() => void client.destroy());
    });
  const host = `Host: 127.0.0.1:${port}\r\n`;
  const token = door.address.split('/')[1] ?? '';
  const owner = `GET /${token}/page HTTP/1.1\r\n${host}Connection: close\r\n\r\n`;
  return { ask, host, token, owner };
}

it('[G12] the connection of a stranger to the DevTools port ends with the refusal', async () => {
  const { ask, host, token, owner } = await openDoor();
  const refused: Readonly<Record<string, string>> = {
    [`GET / HTTP/1.1\r\n${host}\r\n`]: '401',
    [`GET /${token}/ HTTP/1.1\r\n${host}Origin: http://evil.test\r\n\r\n`]: '403',
    'GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n': '421',
    [`GET / HTTP/1.1\r\n${host}${upgrade}\r\n`]: '401',
  };
  for (const [request, status] of Object.entries(refused)) {
    // The second request is not answered.
    const answer = await ask(`${request}${request}`);
    expect(answer.match(/HTTP\/1\.1 \d+/g), request).toEqual([`HTTP/1.1 ${status}`]);
    expect(answer).toMatch(/^connection: close\r$/im);
  }
  expect(await ask(owner)).toMatch(/^HTTP\/1\.1 200 [\s\S]*ok$/);
});

it('[G12] strangers who repeat requests, send bodies slowly or keep their half open lock no owner out', async () => {
  const { ask, host, owner } = await openDoor();
  const all = async (request: string, bodyEveryMs?: number): Promise<void> => {
    const answers = await Promise.all(Array.from({ length: everyPlace }, () => ask(request, bodyEveryMs)));
    expect(new Set(answers.map((answer) => answer.slice(9, 12)))).toEqual(new Set(['401']));
    // The daemon learns a moment after the client that a connection has ended.
    await until(async () => (await ask(owner)).startsWith('HTTP/1.1 200 '));
  };
  await all(`POST / HTTP/1.1\r\n${host}Content-Length: 1000000\r\n\r\nx`, 500);
  await all(`GET / HTTP/1.1\r\n${host}\r\n`);
  await all(`GET / HTTP/1.1\r\n${host}${upgrade}\r\n`);
});
