/** Previews in a real browser of this machine: what its own rules make of cookies, pages of other previews, and WebSockets. */

import { pathToFileURL } from 'node:url';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Sandbox } from '../../src/sdk/sandbox.ts';
import { testDaemon } from '../support/daemon.ts';
import { commandExists, requirement } from '../support/requires.ts';

const programs = ['chromium-headless-shell', 'chromium'];
const program = programs.find(commandExists);
const hasChromium = requirement(`${programs.join(' or ')} on this machine`, program !== undefined);

/** A page with a script of its own, which asks for more and speaks by a WebSocket. It says what it came to. */
const page = `<!doctype html><title>of port PORT</title><p id="said"></p><p id="more"></p><script src="/app.js"></script>`;
const script = `
document.getElementById('more').textContent = 'script';
fetch('/words').then((answer) => answer.text()).then((words) => {
  const socket = new WebSocket('ws://' + location.host + '/socket');
  socket.onopen = () => socket.send('by socket: ' + words);
  socket.onmessage = ({ data }) => { document.getElementById('said').textContent = data; };
});
`;

/** The page above on the port that it is given; `/seen` lists what it was asked for so far. */
const server = `
import binascii, hashlib, socket, sys, threading
port, page, script = int(sys.argv[1]), sys.argv[2], sys.argv[3]
seen = []
def answer(c, kind, body):
    body = body.encode()
    c.sendall(b"HTTP/1.1 200 OK\\r\\ncontent-type: %s\\r\\ncontent-length: %d\\r\\n\\r\\n" % (kind, len(body)) + body)
def serve(c):
    f = c.makefile("rb")
    head = b""
    while not head.endswith(b"\\r\\n\\r\\n"):
        line = f.readline()
        if not line: return
        head += line
    lines = head.decode().split("\\r\\n")
    headers = {line.split(": ", 1)[0].lower(): line.split(": ", 1)[1] for line in lines[1:] if ": " in line}
    path = lines[0].split(" ")[1]
    seen.append(path)
    if path == "/socket":
        key = headers["sec-websocket-key"].encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = binascii.b2a_base64(hashlib.sha1(key).digest()).strip()
        c.sendall(b"HTTP/1.1 101 Switching\\r\\nupgrade: websocket\\r\\nconnection: upgrade\\r\\nsec-websocket-accept: " + accept + b"\\r\\n\\r\\n")
        size = f.read(2)[1] & 127
        mask = f.read(4)
        c.sendall(bytes([129, size]) + bytes(byte ^ mask[at % 4] for at, byte in enumerate(f.read(size))))
        f.read(1)
    elif path == "/app.js": answer(c, b"text/javascript", script)
    elif path == "/words": answer(c, b"text/plain", "words of port %d" % port)
    elif path == "/seen": answer(c, b"text/plain", " ".join(seen))
    elif path == "/": answer(c, b"text/html", page.replace("PORT", str(port)))
    else: c.sendall(b"HTTP/1.1 404 Not Found\\r\\ncontent-length: 0\\r\\n\\r\\n")
    c.close()
s = socket.create_server(("127.0.0.1", port), backlog=64)
print("listening", flush=True)
while True: threading.Thread(target=serve, args=(s.accept()[0],)).start()
`;

async function serve(box: Sandbox, port: number): Promise<void> {
  const argv = ['python3', '-c', server, String(port), page, script];
  const running = await box.spawn(argv, { background: true });
  for await (const chunk of running.stdout) if (chunk.toString().includes('listening')) return;
  throw new Error('the program inside does not listen');
}

/** What a page, of this preview or of another one, gets of `origin` by each way that a page has. */
const attempts = (origin: string): string => `(async () => {
  const outcome = (work) => work.then(String, (error) => 'failed: ' + error.name);
  const get = async (options) => (await fetch('${origin}/words', { credentials: 'include', ...options })).text();
  const put = (kind, place) => new Promise((resolve) => {
    const element = document.createElement(kind);
    element.onload = () => resolve([element, 'loaded']);
    element.onerror = () => resolve([element, 'failed']);
    element.src = place;
    document.body.append(element);
  });
  const [frame] = await put('iframe', '${origin}/');
  const [, script] = await put('script', '${origin}/app.js');
  const opened = new WebSocket('${origin.replace('http:', 'ws:')}/socket');
  const socket = await new Promise((resolve) => {
    opened.onopen = () => resolve('open');
    opened.onerror = () => resolve('failed');
  });
  return {
    fetch: await outcome(get({})),
    blind: await outcome(get({ mode: 'no-cors' })),
    script,
    frame: String(frame.contentDocument),
    socket,
  };
})()`;

describe.runIf(hasChromium)('a preview in a browser', () => {
  let browser: Browser;
  beforeAll(async () => {
    // Chromium has no sandbox of its own as root, or where users may make no namespaces. All that it opens here is of the test.
    browser = await chromium.launch({ executablePath: `/usr/bin/${program}`, args: ['--no-sandbox'] });
  });
  afterAll(() => browser?.close());

  /** As good as a browser of its own: it shares no cookie with another. */
  async function profile(): Promise<BrowserContext> {
    const context = await browser.newContext();
    onTestFinished(() => context.close());
    return context;
  }

  /** Opened as the desktop would: by the file that has the link. Resolves when all of it has spoken. */
  async function enter(context: BrowserContext, box: Sandbox, port: number) {
    const preview = await box.ports.preview(port);
    const tab: Page = await context.newPage();
    await tab.goto(pathToFileURL(preview.launchFile ?? '').href, { waitUntil: 'commit' });
    await tab.getByText(`by socket: words of port ${port}`).waitFor();
    return { tab, preview };
  }

  it('is entered by its link, with its scripts and WebSockets, and kept from the page of another', async () => {
    const box = await (await testDaemon()).make();
    await Promise.all([serve(box, 3000), serve(box, 3001)]);
    const context = await profile();
    const { tab, preview } = await enter(context, box, 3000);
    expect(tab.url()).toBe(`${preview.origin}/`);
    expect(await tab.title()).toBe('of port 3000');
    expect(await tab.locator('#more').textContent()).toBe('script');
    const [cookie, ...more] = await context.cookies(preview.origin);
    expect(cookie).toMatchObject({
      name: 'sallyport_preview',
      httpOnly: true,
      sameSite: 'Strict',
      path: '/',
    });
    expect(more).toEqual([]);
    expect(await tab.evaluate('document.cookie')).toBe('');
    // It stays for who comes back.
    await tab.reload();
    await tab.getByText('by socket: words of port 3000').waitFor();

    const other = await enter(context, box, 3001);
    const seen = async (): Promise<string> =>
      String(await tab.evaluate(`fetch('/seen').then((answer) => answer.text())`));
    const before = await seen();
    expect(await other.tab.evaluate(attempts(preview.origin))).toEqual({
      fetch: 'failed: TypeError',
      // It was sent, and what came is hidden from the page.
      blind: '',
      script: 'failed',
      frame: 'null',
      socket: 'failed',
    });
    // Nothing of it came to the program; the same ways are open to its own page.
    expect(await seen()).toBe(`${before} /seen`);
    expect(await tab.evaluate(attempts(preview.origin))).toEqual({
      fetch: 'words of port 3000',
      blind: 'words of port 3000',
      script: 'loaded',
      frame: '[object HTMLDocument]',
      socket: 'open',
    });
  });

  it('shows nothing to who has no link, a wrong one, or one that was used', async () => {
    const box = await (await testDaemon()).make();
    await serve(box, 3000);
    const preview = await box.ports.preview(3000);
    const context = await profile();
    const tab = await context.newPage();
    const status = async (url: string): Promise<number | undefined> => (await tab.goto(url))?.status();
    const enterUrl = preview.url.replace(/[^/]+$/, '');
    expect(await status(`${preview.origin}/`)).toBe(401);
    expect(await status(`${enterUrl}${'x'.repeat(43)}`)).toBe(403);
    expect(await context.cookies()).toEqual([]);
    expect(await tab.locator('body').textContent()).toMatch(
      /^sally: this link was used before, or is too old/,
    );
    const owner = await (await profile()).newPage();
    await owner.goto(preview.url, { waitUntil: 'commit' });
    await owner.getByText('by socket: words of port 3000').waitFor();
    expect(await status(preview.url)).toBe(403);
    expect(await status(`${preview.origin}/`)).toBe(401);
    expect(await context.cookies()).toEqual([]);
  });
});
