/** A hostile program behind a preview, against the daemon that relays it and the browser of who looks at it. */

import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import type { Sandbox } from '../../src/sdk/sandbox.ts';
import { daemonHome } from '../support/daemon-home.ts';
import { makeSandbox } from '../support/daemon-world.ts';
import { hexPath, httpAnswer, serveHex } from '../support/hex-server.ts';

/** Bytes as they are on a connection of its own, and all that comes back until it ends. */
async function exchange(origin: string, lines: readonly string[]): Promise<string> {
  const { port, host } = new URL(origin);
  const socket = connect(Number(port), '127.0.0.1');
  await once(socket, 'connect');
  const [first, ...headers] = lines;
  socket.write([first, `host: ${host}`, 'connection: close', ...headers, '', ''].join('\r\n'), 'latin1');
  return await text(socket.setEncoding('latin1'));
}

async function enter(box: Sandbox): Promise<{ readonly origin: string; readonly cookie: string }> {
  const { url, origin } = await box.ports.preview(3000);
  const answer = await exchange(origin, [`GET ${url.slice(origin.length)} HTTP/1.1`]);
  return { origin, cookie: /^set-cookie: ([^;]+);/im.exec(answer)?.[1] ?? '' };
}

describe('[N5] a program behind a preview', () => {
  it('does not end the daemon, whatever it answers', async () => {
    const home = await daemonHome();
    const daemon = await home.start();
    const box = await makeSandbox(daemon);
    await serveHex(box, 3000);
    const { origin, cookie } = await enter(box);
    const ask = (answer: string): Promise<string> =>
      exchange(origin, [`GET ${hexPath(answer)} HTTP/1.1`, `cookie: ${cookie}`]);
    for (const answer of [
      'HTTP/1.1 200 \x01\r\ncontent-length: 2\r\n\r\nok',
      'HTTP/1.1 099 Low\r\ncontent-length: 2\r\n\r\nok',
      'HTTP/1.1 101 Go\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
      'HTTP/1.1 101 Go\r\n\r\n',
      'HTTP/1.1 103 Early\r\n\r\n',
      '\x00\x01\x02',
      'x',
    ]) {
      expect(await ask(answer), JSON.stringify(answer)).toMatch(/^HTTP\/1\.1 (200|502) /);
      expect(daemon.child.exitCode).toBeNull();
      expect(await ask(httpAnswer('ok'))).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    }
  });
});
