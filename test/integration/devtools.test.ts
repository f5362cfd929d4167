/**
 * [G12] The DevTools of a browser in a sandbox ask for a token, whatever is asked for: every user of this machine can connect to the port.
 * What answers inside is a program that speaks as Chromium does; `browser.test.ts` has a real one.
 */

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { type ClientOptions, WebSocket } from 'ws';
import type { BrowserStart } from '../../src/sdk/sandbox-browser.ts';
import { sally } from '../support/cli.ts';
import { daemonHome } from '../support/daemon-home.ts';
import { makeSandbox } from '../support/daemon-world.ts';
import { asRoot, when } from '../support/selection.ts';

/** As Chromium: prints where it listens, names itself by the Host it was asked with, and sends back what a WebSocket sends. */
const program = `#!/usr/bin/env python3
import binascii, hashlib, os, socket, sys, threading
guid = "e107184c-2fa4-4b5e-9d43-" + binascii.hexlify(os.urandom(6)).decode()
def serve(c):
    f = c.makefile("rb")
    head = b""
    while not head.endswith(b"\\r\\n\\r\\n"):
        line = f.readline()
        if not line: return c.close()
        head += line
    lines = head.decode().split("\\r\\n")
    headers = {line.split(": ", 1)[0].lower(): line.split(": ", 1)[1] for line in lines[1:] if ": " in line}
    method, path, _ = lines[0].split(" ")
    print("asked", lines[0], flush=True)
    host = headers["host"]
    if path.rstrip("/") == "/json/version":
        body = '{"Browser": "Tried/1", "webSocketDebuggerUrl": "ws://%s/devtools/browser/%s"}' % (host, guid)
    elif path.split("?")[0] in ("/json", "/json/list", "/json/new"):
        page = '{"id": "A1", "webSocketDebuggerUrl": "ws://%s/devtools/page/A1", "devtoolsFrontendUrl": "x"}' % host
        body = page if path.startswith("/json/new") else "[%s]" % page
    elif path in ("/devtools/browser/" + guid, "/devtools/page/A1") and "sec-websocket-key" in headers:
        key = headers["sec-websocket-key"].encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = binascii.b2a_base64(hashlib.sha1(key).digest()).strip()
        c.sendall(b"HTTP/1.1 101 Switching\\r\\nupgrade: websocket\\r\\nconnection: upgrade\\r\\nsec-websocket-accept: " + accept + b"\\r\\n\\r\\n")
        size = f.read(2)[1] & 127
        mask = f.read(4)
        c.sendall(bytes([129, size]) + bytes(byte ^ mask[at % 4] for at, byte in enumerate(f.read(size))))
        f.read(1)
        return c.close()
    else:
        c.sendall(b"HTTP/1.1 404 Not Found\\r\\ncontent-length: 4\\r\\n\\r\\nnone")
        return c.close()
    data = body.encode()
    c.sendall(b"HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: %d\\r\\n\\r\\n" % len(data) + data)
    c.close()
s = socket.create_server(("127.0.0.1", 9222), backlog=64)
print("DevTools listening on ws://127.0.0.1:9222/devtools/browser/" + guid, file=sys.stderr, flush=True)
while True: threading.Thread(target=serve, args=(s.accept()[0],)).start()
`;

interface Answer {
  readonly status: number | undefined;
  readonly body: string;
}

async function ask(
  url: string,
  headers: Readonly<Record<string, string>> = {},
  method = 'GET',
): Promise<Answer> {
  const asked = request(url, { method, headers, agent: false });
  asked.end();
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  return { status: answer.statusCode, body: await text(answer) };
}

/** What the other side sends back. */
async function echo(address: string): Promise<string> {
  const socket = new WebSocket(address);
  await once(socket, 'open');
  socket.send('there and back');
  const [said] = await once(socket, 'message');
  socket.terminate();
  return String(said);
}

async function refusal(address: string, options: ClientOptions = {}): Promise<string> {
  const [error] = (await once(new WebSocket(address, options), 'error')) as [Error];
  return error.message;
}

/** The status that another user of this machine gets, by HTTP and as a WebSocket. */
const otherUser = `
import socket, sys
port, path, *more = sys.argv[1:]
s = socket.create_connection(("127.0.0.1", int(port)))
lines = ["GET %s HTTP/1.1" % path, "host: 127.0.0.1:" + port] + more
s.sendall(("\\r\\n".join(lines) + "\\r\\n\\r\\n").encode())
print(s.makefile("rb").readline().split()[1].decode())
`;
const upgrade = [
  ...['connection: upgrade', 'upgrade: websocket', 'sec-websocket-version: 13'],
  'sec-websocket-key: MDEyMzQ1Njc4OWFiY2RlZg==',
];

async function asNobody(port: number, path: string, lines: readonly string[]): Promise<string> {
  const nobody = ['--reuid=65534', '--regid=65534', '--clear-groups'];
  const argv = [...nobody, '/usr/bin/python3', '-c', otherUser, String(port), path, ...lines];
  const { stdout } = await promisify(execFile)('setpriv', argv, { timeout: 60_000 });
  return stdout.trim();
}

async function driven() {
  const { start, stateDir } = await daemonHome();
  const box = await makeSandbox(await start(), { name: 'driven' });
  await box.files.write('/tmp/tried', program, { mode: 0o755 });
  const drive = (more: BrowserStart = {}) => box.browser.start({ program: '/tmp/tried', ...more });
  const running = async () => (await box.execs()).filter(({ state }) => state === 'running').length;
  return { box, env: { SALLYPORT_STATE_DIR: stateDir }, drive, running };
}

describe('[G12] the DevTools of a browser', () => {
  it('are driven by a client that has the token, by every address that it is told', async () => {
    const { box, drive, running } = await driven();
    const [one, two] = await Promise.all([drive(), drive()]);
    expect(one).toEqual(two);
    const { endpoint, url, port } = one;
    expect(endpoint).toMatch(/^ws:\/\/127\.0\.0\.1:\d+\/[\w-]{43}\/devtools\/browser\/[\w-]{36}$/);
    expect(url).toBe(endpoint.replace('ws:', 'http:').replace(/\/devtools.*/, ''));
    expect(await running()).toBe(1);

    expect(await echo(endpoint)).toBe('there and back');
    for (const path of ['/json/version', '/json/version/']) {
      const { status, body } = await ask(`${url}${path}`);
      expect(status).toBe(200);
      expect(JSON.parse(body)).toEqual({ Browser: 'Tried/1', webSocketDebuggerUrl: endpoint });
    }
    const [page] = JSON.parse((await ask(`${url}/json/list`)).body) as [{ webSocketDebuggerUrl: string }];
    expect(page).toEqual({ id: 'A1', webSocketDebuggerUrl: `${url.replace('http', 'ws')}/devtools/page/A1` });
    expect(await echo(page.webSocketDebuggerUrl)).toBe('there and back');
    expect(JSON.parse((await ask(`${url}/json/new?about:blank`, {}, 'PUT')).body)).toEqual(page);
    // By another name of this machine the addresses have that name.
    const named = await ask(url.replace('127.0.0.1', 'localhost').concat('/json/version'));
    expect(named.body).toContain(`ws://localhost:${port}/`);
    expect((await ask(`${url}/elsewhere`)).status).toBe(404);

    // The browser never learns the token.
    let asked = '';
    for await (const chunk of box.logs(one.execId)) asked += chunk.toString();
    expect(asked).toContain('asked GET /json/version HTTP/1.1');
    expect(asked).not.toContain(url.split('/').at(-1));
    // Nothing is published: a published port has no token.
    expect(await box.ports.list()).toEqual([]);
  });

  it('refuse whoever lacks the token, web pages and rebound names', async () => {
    const { endpoint, url, port } = await (await driven()).drive();
    const { pathname, host } = new URL(endpoint);
    const bare = pathname.replace(/^\/[\w-]{43}/, '');
    const paths = ['/', '/json', '/json/version', '/json/version/', '/json/list', '/json/protocol', bare];
    for (const path of paths) {
      expect((await ask(`http://${host}${path}`)).status, path).toBe(401);
      expect(await refusal(`ws://${host}${path}`), path).toContain('401');
    }
    expect((await ask(`http://${host}/json/new`, {}, 'PUT')).status).toBe(401);
    expect((await ask(`http://${host}/${'x'.repeat(43)}/json/version`)).status).toBe(401);

    for (const name of [`evil.test:${port}`, 'evil.test', `127.0.0.1:${port + 1}`]) {
      expect((await ask(`${url}/json/version`, { host: name })).status, name).toBe(421);
      expect(await refusal(endpoint, { headers: { host: name } }), name).toContain('421');
    }
    for (const origin of ['http://evil.test', `http://127.0.0.1:${port}`, 'null']) {
      expect((await ask(`${url}/json/version`, { origin })).status, origin).toBe(403);
      expect(await refusal(endpoint, { origin }), origin).toContain('403');
    }
    expect((await ask(`${url}/json/version`, { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    expect((await ask(`${url}/json/version`)).status).toBe(200);
    expect(await echo(endpoint)).toBe('there and back');
  });

  when(asRoot).it('refuse another user of this machine who lacks the token', async () => {
    const { endpoint, port } = await (await driven()).drive();
    const { pathname } = new URL(endpoint);
    const token = /^\/[\w-]{43}/.exec(pathname)?.[0] ?? '';
    const bare = pathname.slice(token.length);
    for (const path of ['/json/version', '/json/list', bare, '/devtools/page/A1']) {
      expect(await asNobody(port, path, []), path).toBe('401');
      expect(await asNobody(port, path, upgrade), path).toBe('401');
    }
    expect(await asNobody(port, `${token}/json/version`, [])).toBe('200');
    expect(await asNobody(port, pathname, upgrade)).toBe('101');
  });

  it('are at the port that was asked for, and gone with the browser', async () => {
    const { box, env, drive, running } = await driven();
    const { endpoint, url, port } = await drive();
    const told = await sally(['browser', 'driven', '--program', '/tmp/tried', '--json'], { env });
    expect(JSON.parse(told.stdout), told.stderr).toMatchObject({ endpoint, url, port });
    const open = new WebSocket(endpoint);
    await once(open, 'open');
    const closed = once(open, 'close');
    expect((await sally(['browser', 'driven', '--stop'], { env })).code).toBe(0);
    await closed;
    await expect(ask(`${url}/json/version`)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    expect(await running()).toBe(0);
    await box.browser.stop();

    const again = await drive({ port });
    expect(again.port).toBe(port);
    expect(again.url).not.toBe(url);
    // The token of the browser before is worth nothing.
    expect((await ask(`${url}/json/version`)).status).toBe(401);
    expect((await ask(`${again.url}/json/version`)).status).toBe(200);
  });

  it('are not started behind a published port, which has no token', async () => {
    const { box, drive, running } = await driven();
    const { host } = await box.ports.publish(9222);
    await expect(drive()).rejects.toMatchObject({
      code: 'browser_failed',
      advice: expect.stringContaining(`--unpublish ${host}`),
    });
    expect(await running()).toBe(0);
    await box.ports.unpublish(host);
    expect((await drive()).port).toBeGreaterThan(0);
  });

  it('are behind no port that is published while the browser runs', async () => {
    const { box, env, drive } = await driven();
    const before = await box.ports.publish(8000);
    await drive();
    await expect(box.ports.publish(9222)).rejects.toMatchObject({
      code: 'refused_by_policy',
      advice: expect.stringContaining('sally browser driven --stop'),
    });
    const told = await sally(['ports', 'driven', '--publish', '9222'], { env });
    expect([told.code, told.stderr]).toEqual([2, expect.stringContaining('DevTools')]);
    expect((await box.ports.list()).map(({ host }) => host)).toEqual([before.host]);
    // Another port leads to no browser, and without the browser the port may be published.
    const { host } = await box.ports.publish(9223);
    await box.ports.unpublish(host);
    await box.browser.stop();
    expect(await box.ports.publish(9222)).toMatchObject({ box: 9222, open: true });
  });

  it('are behind no port that another spec of the running sandbox names', async () => {
    const daemon = await (await daemonHome()).start();
    const reused = (port: number) => makeSandbox(daemon, { name: 'driven', reuse: true, ports: [port] });
    const box = await reused(8000);
    await box.files.write('/tmp/tried', program, { mode: 0o755 });
    await box.browser.start({ program: '/tmp/tried' });
    await expect(reused(9222)).rejects.toMatchObject({ code: 'refused_by_policy' });
    // A spec that is refused changes nothing.
    expect((await box.ports.list()).map((port) => port.box)).toEqual([8000]);
    await box.browser.stop();
    expect((await (await reused(9222)).ports.list()).map((port) => port.box)).toEqual([9222]);
  });

  it('and a published port never come together where both are asked for at once', async () => {
    const { box, drive, running } = await driven();
    for (let round = 0; round < 8; round++) {
      const [browser, port] = await Promise.allSettled([drive(), box.ports.publish(9222)]);
      expect([browser.status, port.status]).toContain('rejected');
      if (port.status === 'fulfilled') {
        expect(await running()).toBe(0);
        await box.ports.unpublish(port.value.host);
      } else expect(await box.ports.list()).toEqual([]);
      await box.browser.stop();
    }
  });
});
