/** Ports of a sandbox without a network card that this machine reaches, through the daemon and porter. */

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import type { SandboxView } from '../../src/protocol/views.ts';
import { Sandbox } from '../../src/sdk/sandbox.ts';
import { makeBox, sally } from '../support/cli.ts';
import { daemonHome } from '../support/daemon-home.ts';
import { makeSandbox } from '../support/daemon-world.ts';

/** Says on the first line that it listens, then answers each connection with what it read to the end. */
const echo = (port: number): readonly string[] => [
  'python3',
  '-c',
  `
import socket, threading
s = socket.create_server(("127.0.0.1", ${port}), backlog=64)
print("listening", flush=True)
def serve(c):
    c.sendall(b"you said " + c.makefile("rb").read())
    c.close()
while True: threading.Thread(target=serve, args=(s.accept()[0],)).start()
`,
];

/** Whole: what it answers after it was told that nothing more comes. */
async function say(words: string | Buffer, port: number, host = '127.0.0.1'): Promise<string> {
  const socket = connect({ port, host });
  await once(socket, 'connect');
  socket.end(words);
  return await text(socket);
}

/** `closed`: nobody listens. `refused`: somebody does, and cuts the connection. */
async function fate(port: number, host = '127.0.0.1'): Promise<'closed' | 'refused'> {
  const socket = connect({ port, host });
  try {
    await once(socket, 'connect');
    socket.resume();
    await once(socket, 'close');
    return 'refused';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ECONNREFUSED' ? 'closed' : 'refused';
  } finally {
    socket.destroy();
  }
}

async function serving(box: Sandbox, port: number): Promise<void> {
  const running = await box.spawn(echo(port), { background: true });
  for await (const chunk of running.stdout) if (chunk.toString().includes('listening')) return;
  throw new Error('the program inside does not listen');
}

async function takenPort(): Promise<number> {
  const server = createServer();
  server.listen(0, '::1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

describe('a published port', () => {
  test('reaches a program inside on both loopback addresses, in bulk and at once, without a network card', async () => {
    const daemon = await (await daemonHome()).start();
    const box = await makeSandbox(daemon, { ports: [3000] });
    const [published] = await box.ports.list();
    expect(published).toMatchObject({ box: 3000, addresses: ['127.0.0.1', '::1'], open: true });
    const host = published?.host ?? 0;
    expect(await fate(host)).toBe('refused');
    await serving(box, 3000);
    expect(await say('hello', host)).toBe('you said hello');
    expect(await say('hello', host, '::1')).toBe('you said hello');
    expect(box.info.isolation.network).toBe('none');
    const big = 'x'.repeat(4_000_000);
    expect(await say(big, host)).toBe(`you said ${big}`);
    const many = await Promise.all(Array.from({ length: 50 }, (_, index) => say(`${index}`, host)));
    expect(many).toEqual(Array.from({ length: 50 }, (_, index) => `you said ${index}`));

    // While it runs: another one.
    await serving(box, 4000);
    const second = await box.ports.publish('4000');
    expect(await say('more', second.host)).toBe('you said more');
    const open: Socket = connect(second.host, '127.0.0.1');
    await once(open, 'connect');
    const cutOff = new Promise((resolve) => open.once('close', resolve));
    open.on('error', () => {});
    await box.ports.unpublish(second.host);
    await cutOff;
    expect(await fate(second.host)).toBe('closed');
    await expect(box.ports.unpublish(second.host)).rejects.toMatchObject({ code: 'port_not_published' });
    await box.remove({ force: true });
    expect(await fate(host)).toBe('closed');
  });

  test('[A16] comes back with the daemon and with the sandbox, at the same place', async () => {
    const home = await daemonHome();
    const first = await home.start();
    const box = await makeSandbox(first, { name: 'kept', ports: [3000] });
    await serving(box, 3000);
    const host = (await box.ports.list())[0]?.host ?? 0;
    first.child.kill('SIGKILL');
    await first.ended;
    expect(await fate(host)).toBe('closed');
    const second = await home.start();
    const again = await Sandbox.connect('kept', { client: second.client });
    expect(await say('back', host)).toBe('you said back');
    await again.stop();
    expect(await fate(host)).toBe('closed');
    expect((await again.ports.list())[0]).toMatchObject({ host, open: false });

    // Another program has it now: that is known before anything is started.
    const other = createServer().listen(host, '127.0.0.1');
    await once(other, 'listening');
    await expect(again.start()).rejects.toMatchObject({ code: 'port_unavailable' });
    expect((await again.refresh()).state).toBe('STOPPED');
    other.close();
    await once(other, 'close');
    await again.start();
    await serving(again, 3000);
    expect(await say('again', host)).toBe('you said again');
    await again.remove({ force: true });
  });

  test('that is taken, or no port, is an error before anything is made', async () => {
    const home = await daemonHome();
    const daemon = await home.start();
    const port = await takenPort();
    await expect(makeSandbox(daemon, { ports: [`${port}:3000`] })).rejects.toMatchObject({
      code: 'port_unavailable',
      message: expect.stringContaining('another program of this machine listens there'),
    });
    await expect(makeSandbox(daemon, { ports: ['99999:3000'] })).rejects.toMatchObject({
      code: 'request_invalid',
    });
    const { sandboxes } = await daemon.client.json<{ sandboxes: SandboxView[] }>('GET', '/v1/sandboxes');
    expect(sandboxes).toEqual([]);
    expect(await home.engine.list(home.owner)).toEqual([]);
  });
});

describe('on the command line', () => {
  test('ports are published with the sandbox and later, listed, and taken back', async () => {
    const name = await makeBox(['-p', '3000']);
    const listed = JSON.parse((await sally(['ports', name, '--json'])).stdout);
    expect(listed).toMatchObject({ ports: [{ box: 3000, open: true }] });
    const host = listed.ports[0].host as number;
    expect((await sally(['ports', name, '--publish', '5000'])).code).toBe(0);
    const left = await sally(['ports', name, '--unpublish', String(host)]);
    expect(left.stdout).toContain('5000');
    expect(left.stdout).not.toContain('3000');
    const wrong = await sally(['create', '--image', inject('engine').image, '-p', 'web']);
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toContain('"web") is no port');
  });
});
