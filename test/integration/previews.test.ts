/** Previews: a port of a sandbox for one browser of one user, and for nobody else who can connect to this machine's loopback. */

import { stat } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type { Sandbox } from '../../src/sdk/sandbox.ts';
import { boxForAll, sally } from '../support/cli.ts';
import { testDaemon } from '../support/daemon.ts';

/** Shows what it was asked with; `/events` says one thing and waits, `/socket` is a WebSocket that sends back what it gets. */
const server = `
import binascii, hashlib, socket, threading
def serve(c):
    f = c.makefile("rb")
    head = b""
    while not head.endswith(b"\\r\\n\\r\\n"): head += f.readline()
    lines = head.decode().split("\\r\\n")
    headers = {line.split(": ", 1)[0].lower(): line.split(": ", 1)[1] for line in lines[1:] if ": " in line}
    path = lines[0].split(" ")[1]
    if path == "/events":
        c.sendall(b"HTTP/1.1 200 OK\\r\\ncontent-type: text/event-stream\\r\\n\\r\\ndata: first\\n\\n")
        f.read(1)
    elif path == "/socket":
        key = headers["sec-websocket-key"].encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = binascii.b2a_base64(hashlib.sha1(key).digest()).strip()
        c.sendall(b"HTTP/1.1 101 Switching\\r\\nupgrade: websocket\\r\\nconnection: upgrade\\r\\nsec-websocket-accept: " + accept + b"\\r\\n\\r\\n")
        size = f.read(2)[1] & 127
        mask = f.read(4)
        said = bytes(byte ^ mask[at % 4] for at, byte in enumerate(f.read(size)))
        c.sendall(bytes([129, size]) + said)
        f.read(1)
    else:
        said = f.read(int(headers.get("content-length", 0)))
        body = head.replace(b"\\r", b"") + said
        c.sendall(b"HTTP/1.1 200 OK\\r\\ncontent-length: %d\\r\\nset-cookie: app=1; Domain=localhost; Path=/\\r\\nset-cookie: sallyport_preview=mine\\r\\n\\r\\n" % len(body) + body)
    c.close()
s = socket.create_server(("127.0.0.1", 3000), backlog=64)
print("listening", flush=True)
while True: threading.Thread(target=serve, args=(s.accept()[0],)).start()
`;

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** To the place that the URL names, as a browser would: names below localhost are this machine. */
function open(url: string, more: { headers?: Record<string, string>; method?: string } = {}) {
  const { port, host, pathname, search } = new URL(url);
  const { headers = {}, method = 'GET' } = more;
  // A connection for each: one that is kept may be ended by the other side at the moment in which it is used again.
  const place = { host: '127.0.0.1', port, agent: false } as const;
  return request({ ...place, path: pathname + search, method, headers: { host, ...headers } });
}

async function ask(url: string, more: Parameters<typeof open>[1] & { body?: string } = {}): Promise<Answer> {
  const asked = open(url, more);
  const answer = new Promise<IncomingMessage>((resolve, reject) => {
    asked.once('response', resolve).once('error', reject);
  });
  asked.end(more.body);
  const got = await answer;
  return { status: got.statusCode, headers: got.headers, body: await text(got) };
}

/** What a browser keeps of the answer. */
const cookieOf = ({ headers }: Answer): string => headers['set-cookie']?.[0]?.split(';')[0] ?? '';

async function serving(): Promise<{ box: Sandbox; daemon: Awaited<ReturnType<typeof testDaemon>> }> {
  const daemon = await testDaemon();
  const box = await daemon.make();
  const running = await box.spawn(['python3', '-c', server], { background: true });
  for await (const chunk of running.stdout) {
    if (chunk.toString().includes('listening')) return { box, daemon };
  }
  throw new Error('the program inside does not listen');
}

describe('a preview', () => {
  it('lets in whoever has the link, once, and then by a cookie of that host alone', async () => {
    const { box } = await serving();
    const preview = await box.ports.preview(3000, { path: '/start?a=1&b=2' });
    const { origin } = preview;
    expect(origin).toMatch(/^http:\/\/[0-9a-f]{20}\.localhost:\d+$/);

    const entered = await ask(preview.url);
    expect(entered.status).toBe(200);
    expect(entered.body).toContain('url=/start?a=1&#38;b=2"');
    expect(entered.headers).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' });
    const [set = ''] = entered.headers['set-cookie'] ?? [];
    expect(set).toMatch(/; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/);
    expect(set).not.toContain('Domain');
    const cookie = cookieOf(entered);

    const page = await ask(`${origin}/page?x`, { headers: { cookie: `theme=dark; ${cookie}` } });
    expect(page.status).toBe(200);
    expect(page.body).toContain('GET /page?x HTTP/1.1\n');
    // The program inside sees its own cookies, and not ours; it sets none for others, and not ours.
    expect(page.body).toMatch(/^cookie: theme=dark$/im);
    expect(page.body).not.toContain('sallyport_preview');
    expect(page.headers['set-cookie']).toEqual(['app=1; Path=/']);
    const posted = await ask(`${origin}/form`, {
      method: 'POST',
      body: 'said',
      headers: { cookie, origin, 'content-length': '4' },
    });
    expect(posted.body).toMatch(/^POST \/form [\s\S]*\nsaid$/);

    // The link is used up, for whoever read it in a command line or a history as well.
    const again = await ask(preview.url);
    expect(again.status).toBe(403);
    expect(again.headers['set-cookie']).toBeUndefined();
    expect((await ask(`${origin}/`)).status).toBe(401);
    expect((await ask(`${origin}/`, { headers: { cookie: `${cookie}x` } })).status).toBe(401);
    expect((await ask(`${origin}/.sallyport/enter/wrong`)).status).toBe(403);
  });

  it('refuses other names for it, and requests of other pages', async () => {
    const { box } = await serving();
    const { url, origin } = await box.ports.preview(3000);
    const cookie = cookieOf(await ask(url));
    const status = async (headers: Record<string, string>): Promise<number | undefined> =>
      (await ask(`${origin}/`, { headers: { cookie, ...headers } })).status;
    expect(await status({})).toBe(200);
    const { port, host } = new URL(origin);
    // Rebinding: a name that somebody's DNS points here, or the address itself.
    for (const other of [`evil.example:${port}`, `127.0.0.1:${port}`, `localhost:${port}`, `x${host}`, '']) {
      expect(await status({ host: other }), other).not.toBe(200);
    }
    for (const headers of [
      { origin: 'http://evil.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
    ]) {
      expect(await status(headers), JSON.stringify(headers)).toBe(403);
    }
    expect(await status({ origin, 'sec-fetch-site': 'same-origin' })).toBe(200);
    // A second sandbox's cookie is worth nothing here.
    const other = await box.ports.preview(3001);
    const foreign = cookieOf(await ask(other.url));
    expect(await status({ cookie: foreign })).toBe(401);
    // What nobody listens on is said, to whoever may know.
    const nothing = await ask(`${other.origin}/`, { headers: { cookie: foreign } });
    expect(nothing).toMatchObject({ status: 502, body: expect.stringContaining('port 3001') });
  });

  it('passes events as they come, and WebSockets, to those who are let in', async () => {
    const { box } = await serving();
    const { url, origin } = await box.ports.preview(3000);
    const cookie = cookieOf(await ask(url));
    const asked = open(`${origin}/events`, { headers: { cookie } });
    asked.end();
    const events = await new Promise<IncomingMessage>((resolve) => asked.once('response', resolve));
    // The program inside waits, and never comes to the end of its answer.
    const first = await new Promise<Buffer>((resolve) => events.once('data', resolve));
    expect(first.toString()).toBe('data: first\n\n');
    events.on('error', () => {});
    asked.destroy();

    const { port, host } = new URL(origin);
    const socket = (headers: Record<string, string>): WebSocket =>
      new WebSocket(`ws://127.0.0.1:${port}/socket`, { headers: { host, ...headers } });
    const refused = async (headers: Record<string, string>): Promise<string> =>
      await new Promise((resolve) => {
        socket(headers).once('error', ({ message }) => resolve(message));
      });
    expect(await refused({})).toContain('401');
    expect(await refused({ cookie, origin: 'http://evil.example' })).toContain('403');
    const open2 = socket({ cookie, origin });
    const said = new Promise((resolve) => open2.once('message', (data) => resolve(String(data))));
    open2.once('open', () => open2.send('over and out'));
    expect(await said).toBe('over and out');

    // The end of the preview is the end of what is connected.
    const over = new Promise((resolve) => open2.once('close', resolve));
    const [preview] = await box.ports.previews();
    expect(preview).toMatchObject({ box: 3000, sessions: 1 });
    await box.ports.endPreview(preview?.id ?? '');
    await over;
    expect((await ask(`${origin}/`, { headers: { cookie } })).status).toBe(421);
    await expect(box.ports.endPreview('none')).rejects.toMatchObject({ code: 'preview_not_found' });
  });

  it('ends with its time, its sandbox and its daemon', async () => {
    const { box, daemon } = await serving();
    const short = await box.ports.preview(3000, { ttlMs: 1000 });
    const entered = await ask(short.url);
    const endsMs = Date.now() + 1000;
    // No event tells a browser that its time is over: it is asked until it is.
    const headers = { cookie: cookieOf(entered) };
    while ((await ask(`${short.origin}/`, { headers })).status === 200)
      expect(Date.now() - endsMs).toBeLessThan(60_000);
    expect((await ask(`${short.origin}/`, { headers })).status).toBe(401);
    await expect(box.ports.preview(3000, { ttlMs: 1 })).rejects.toMatchObject({ code: 'request_invalid' });
    await expect(box.ports.preview(3000, { path: '//evil.example' })).rejects.toMatchObject({
      code: 'request_invalid',
    });
    const long = await box.ports.preview(3000);
    const cookie = cookieOf(await ask(long.url));
    expect((await ask(`${long.origin}/`, { headers: { cookie } })).status).toBe(200);
    await box.remove();
    expect((await ask(`${long.origin}/`, { headers: { cookie } })).status).toBe(502);
    await daemon.client.shutdown({ keep: true });
    await expect(ask(`${long.origin}/`, { headers: { cookie } })).rejects.toMatchObject({
      code: 'ECONNREFUSED',
    });
  });
});

describe('sally open', () => {
  const box = boxForAll(['-p', '3000']);
  beforeAll(async () => {
    expect((await sally(['exec', '--detach', box(), 'python3', '-c', server])).code).toBe(0);
  });

  it('gives a link, keeps the token out of command lines, lists and revokes', async () => {
    const made = await sally(['open', box(), '--no-browser', '--json']);
    expect(made.code, made.stderr).toBe(0);
    const preview = JSON.parse(made.stdout) as { url: string; box: number; launch_file: string };
    expect(preview.box).toBe(3000);
    const file = await stat(preview.launch_file);
    expect(file.mode & 0o777).toBe(0o600);
    const cookie = cookieOf(await ask(preview.url));
    expect(cookie).not.toBe('');
    await expect(stat(preview.launch_file)).rejects.toMatchObject({ code: 'ENOENT' });
    const { origin } = new URL(preview.url);
    expect((await sally(['open', box(), '--ls'])).stdout).toContain(origin);
    const printed = await sally(['open', box(), '3000']);
    expect(printed.stdout).toMatch(new RegExp(`^${origin}/\\.sallyport/enter/[\\w-]{43}\n$`));
    expect((await sally(['open', box(), '--revoke'])).code).toBe(0);
    expect((await ask(`${origin}/`, { headers: { cookie } })).status).toBe(421);
    expect((await sally(['open', box(), '0'])).code).toBe(2);
  });
});
