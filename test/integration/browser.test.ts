/** [G12] Chromium in a sandbox, driven from this machine: through the gate, and leaking neither a name nor an address. */

import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, get, type IncomingMessage } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type Browser, chromium } from 'playwright-core';
import { describe, expect, it, onTestFinished } from 'vitest';
import WebSocket, { type ClientOptions } from 'ws';
import { dockerImageEngine } from '../../src/engines/docker/image-engine.ts';
import { SandboxAuthority } from '../../src/gate/tls/sandbox-authority.ts';
import { ensureTemplate } from '../../src/images/ensure-template.ts';
import { silent } from '../../src/lib/progress.ts';
import type { Sandbox } from '../../src/sdk/sandbox.ts';
import { CdpClient } from '../support/cdp-client.ts';
import { sally } from '../support/cli.ts';
import { daemonHome } from '../support/daemon-home.ts';
import { makeSandbox } from '../support/daemon-world.ts';
import { testDns } from '../support/dns-server.ts';
import { testEngine } from '../support/engine.ts';
import { openFor } from '../support/gate-box.ts';
import { realClients, when } from '../support/selection.ts';
import { until } from '../support/until.ts';

/** Made by the first run that needs it; takes minutes. */
async function browserImage(): Promise<string> {
  const engine = dockerImageEngine(testEngine().connection);
  const made = await ensureTemplate('browser', { engine, progress: silent, consent: async () => true });
  return made.reference;
}

const image = realClients.isSelected ? await browserImage() : '';

/** A page that tries every way by which a browser asks for names before anybody asked it to. */
const page = `<!doctype html><title>of the test</title>
<link rel="dns-prefetch" href="//prefetched.test"><link rel="preconnect" href="https://preconnected.test">
<img src="http://denied.test/x.png"><p id="said">hello from the test</p>`;

async function site() {
  const seen: string[] = [];
  const server = createServer((request, answer) => {
    seen.push(`${request.headers.host}${request.url}`);
    answer.setHeader('content-type', 'text/html');
    answer.end(page);
  });
  return { port: await listen(server), seen };
}

async function listen(server: Server & { closeAllConnections(): void }): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

/** Without anything that holds it back: shows that there is something to leak, and that the test would see it. */
const careless = (port: number) => [
  ...['env', '-i', 'PATH=/usr/bin:/bin', 'HOME=/tmp', '/usr/bin/chromium-headless-shell'],
  ...['--no-sandbox', '--disable-dev-shm-usage', '--user-data-dir=/tmp/careless'],
  `--remote-debugging-port=${port}`,
];

/** What a page learns of addresses, as far as it asks a STUN server. */
const candidates = `new Promise((resolve) => {
  const found = [];
  const peer = new RTCPeerConnection({ iceServers: [{ urls: 'stun:stun:3478' }] });
  peer.onicecandidate = ({ candidate }) => (candidate ? found.push(candidate.candidate) : resolve(found));
  peer.createDataChannel('x');
  peer.createOffer().then((offer) => peer.setLocalDescription(offer));
})`;

/** Answers a binding request with the address that it came from, and says so. */
const stunServer = `
import socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("0.0.0.0", 3478))
print("listening", flush=True)
while True:
    data, (host, port) = s.recvfrom(2048)
    print("asked by", host, flush=True)
    address = struct.unpack(">I", socket.inet_aton(host))[0] ^ 0x2112A442
    body = struct.pack(">HHBBHI", 0x20, 8, 0, 1, port ^ 0x2112, address)
    s.sendto(struct.pack(">HH", 0x101, len(body)) + data[4:20] + body, (host, port))
`;

async function statusFor(url: string, host: string): Promise<{ status: number; body: string }> {
  const [answer] = (await once(get(`${url}/json/version`, { headers: { host } }), 'response')) as [
    IncomingMessage,
  ];
  return { status: answer.statusCode ?? 0, body: await text(answer) };
}

async function refusal(place: string, options: ClientOptions): Promise<string> {
  const [error] = (await once(new WebSocket(place, options), 'error')) as [Error];
  return error.message;
}

/** By the name of a program that asks for names, not by the proxy. */
async function askedByName(box: Sandbox): Promise<readonly string[]> {
  const hosts: string[] = [];
  for await (const { entrance, host } of box.net.log()) if (entrance === 'transparent') hosts.push(host);
  return hosts;
}

async function serviceSaid(box: Sandbox): Promise<string> {
  let words = '';
  for await (const chunk of box.serviceLogs('stun')) words += chunk.toString();
  return words;
}

async function connectCareless(box: Sandbox): Promise<CdpClient> {
  const running = await box.spawn(careless(9333), { background: true, timeoutMs: 0 });
  let said = '';
  for await (const chunk of running.stderr) {
    said += chunk.toString();
    if (/DevTools listening on \S+\n/.test(said)) break;
  }
  running.disconnect();
  const path = /ws:\/\/[^/]+(\S+)/.exec(said)?.[1] ?? '';
  return await CdpClient.connect(`ws://127.0.0.1:${(await box.ports.publish(9333)).host}${path}`);
}

interface Surfing {
  readonly box: Sandbox;
  readonly stateDir: string;
  readonly sitePort: number;
  readonly seen: readonly string[];
  readonly dnsAsked: readonly string[];
}

async function surfing(): Promise<Surfing> {
  const { port, seen } = await site();
  const dns = await testDns({ 'site.test': ['127.0.0.1'] });
  const { start, stateDir } = await daemonHome();
  const box = await makeSandbox(await start({ SALLYPORT_DNS_SERVERS: dns.server }), {
    name: 'surfing',
    image: image ?? '',
    egress: { allow: openFor(port, 'site.test') ?? [] },
    requiredServices: [
      {
        name: 'stun',
        image: testEngine().image,
        command: ['python3', '-uc', stunServer],
        healthcheck: { test: 'grep -q :0D96 /proc/net/udp', interval: '200ms' },
      },
    ],
  });
  return { box, stateDir, sitePort: port, seen, dnsAsked: dns.asked };
}

/** Through the gate, and no name or address by any other way; then the same page with nothing that holds it back. */
async function surfWithoutLeaks({ box, sitePort, seen, dnsAsked }: Surfing, endpoint: string): Promise<void> {
  const browser = await CdpClient.connect(endpoint);
  const tab = await browser.openPage(`http://site.test:${sitePort}/`);
  expect(await tab.evaluate('document.title + " " + document.getElementById("said").textContent')).toBe(
    'of the test hello from the test',
  );
  const { data } = await tab.call('Page.captureScreenshot', { format: 'png' });
  expect(Buffer.from(String(data), 'base64').subarray(1, 4).toString()).toBe('PNG');
  const failed = await tab.evaluate(`fetch('https://denied.test/').then(() => 'came', (e) => 'failed ' + e)`);
  expect(failed).toMatch(/^failed TypeError/);
  expect((await box.net.info()).denied.map(({ host }) => host)).toContain('denied.test');
  expect(await tab.evaluate(candidates)).toEqual([]);
  expect(await askedByName(box)).toEqual([]);
  expect(await serviceSaid(box)).toBe('listening\n');
  expect(seen.every((line) => line.startsWith(`site.test:${sitePort}/`))).toBe(true);
  expect(dnsAsked.filter((name) => name !== 'site.test')).toEqual([]);

  const free = await (await connectCareless(box)).openPage(`http://site.test:${sitePort}/`);
  // The page has loaded when one of the questions for a name was answered; the question that is logged may come after it.
  await until(async () => (await askedByName(box)).includes('denied.test'));
  expect(await free.evaluate(candidates)).not.toEqual([]);
  // The engine has what a service printed some time after the service went on.
  await until(async () => (await serviceSaid(box)).includes('asked by'));
}

when(realClients).describe('[G12] a browser in a sandbox', () => {
  it('is driven from this machine by who knows its token, and leaks neither a name nor an address', async () => {
    const { box, stateDir, ...world } = await surfing();
    const both = await Promise.all([box.browser.start(), box.browser.start()]);
    expect(both[0]).toEqual(both[1]);
    const [{ endpoint, url, port }] = both;
    expect(endpoint).toMatch(/^ws:\/\/127\.0\.0\.1:\d+\/[\w-]{43}\/devtools\/browser\/[\w-]{36}$/);
    const env = { SALLYPORT_STATE_DIR: stateDir };
    const told = await sally(['browser', 'surfing', '--json'], { env });
    expect(JSON.parse(told.stdout), told.stderr).toMatchObject({ endpoint, url, port });
    expect((await sally(['browser', 'surfing'], { env })).stdout).toBe(`${endpoint}\n`);

    expect((await statusFor(url, `127.0.0.1:${port}`)).body).toContain('HeadlessChrome');
    expect(JSON.parse((await statusFor(url, `127.0.0.1:${port}`)).body)).toMatchObject({
      webSocketDebuggerUrl: endpoint,
    });
    const bare = `127.0.0.1:${port}`;
    expect(await statusFor(`http://${bare}`, bare)).toMatchObject({ status: 401 });
    expect(await refusal(`ws://${bare}${endpoint.slice(endpoint.indexOf('/devtools'))}`, {})).toContain(
      '401',
    );
    expect((await statusFor(url, 'evil.test')).body).not.toContain('HeadlessChrome');
    expect(await refusal(endpoint, { origin: 'http://evil.test' })).toContain('403');
    expect(await refusal(endpoint.replace(/[^/]+$/, 'guessed'), {})).toContain('404');

    await surfWithoutLeaks({ box, stateDir, ...world }, endpoint);

    expect((await sally(['browser', 'surfing', '--stop'], { env })).code).toBe(0);
    expect((await box.ports.list()).map(({ box: inside }) => inside)).toEqual([9333]);
    expect((await box.execs()).filter(({ state }) => state === 'running')).toHaveLength(1);
    // None that runs is no error.
    await box.browser.stop();
  });
});

/** A page that does something when it is clicked, and asks its own server for more. */
const clickable = `<!doctype html><title>by TLS</title><button>more</button><p id="got"></p><script>
document.querySelector('button').onclick = async () => {
  document.getElementById('got').textContent = await (await fetch('/more')).text();
};</script>`;

/** With certificates of an authority that the daemon trusts, and nobody in a sandbox; `more` comes after the leaf. */
async function tlsSite(authority: SandboxAuthority, host: string, more = '') {
  const { key, cert } = authority.leafFiles(host);
  const seen: string[] = [];
  const server = createTlsServer({ key, cert: `${cert}${more}` }, (request, answer) => {
    seen.push(`${request.method} ${request.url}`);
    answer.setHeader('content-type', 'text/html');
    answer.end(request.url === '/more' ? 'more by TLS' : clickable);
  });
  return { port: await listen(server), seen };
}

/** What comes of opening it in a tab of its own. */
async function visit(browser: Browser, url: string): Promise<string> {
  const page = await browser.newPage();
  try {
    await page.goto(url);
    return await page.title();
  } catch (error) {
    return /net::\w+/.exec(String(error))?.[0] ?? String(error);
  } finally {
    await page.close();
  }
}

when(realClients).describe('[G12] Playwright with a browser in a sandbox', () => {
  it('[R7] drives pages whose TLS the gate opens, and gets no page by a certificate that nobody vouches for', async () => {
    const world = SandboxAuthority.create('the world', new Date());
    const opened = await tlsSite(world, 'opened.test');
    const tunnelled = await tlsSite(world, 'tunnelled.test');
    const local = ['127.0.0.1'];
    const dns = await testDns({ 'opened.test': local, 'tunnelled.test': local, 'posing.test': local });
    const { start, stateDir } = await daemonHome();
    const roots = join(stateDir, 'roots.pem');
    await writeFile(roots, world.certificatePem);
    const daemon = await start({ SALLYPORT_DNS_SERVERS: dns.server, SALLYPORT_EXTRA_CA_CERTS: roots });
    const box = await makeSandbox(daemon, {
      image: image ?? '',
      egress: {
        allow: [
          { host: 'opened.test', ports: [opened.port], methods: ['GET'] },
          { host: 'tunnelled.test', ports: [tunnelled.port] },
          { host: '127.0.0.1', ports: 'any' },
        ],
      },
    });
    // Shows the sandbox's CA among its certificates, which is no secret inside, and has nothing signed by it.
    const ca = await box.files.read(`${box.info.user.home}/.sallyport/gate-ca.pem`);
    const posing = await tlsSite(world, 'posing.test', ca.toString());
    await box.net.allow([`posing.test:${posing.port}`]);

    const browser = await chromium.connectOverCDP((await box.browser.start()).endpoint);
    onTestFinished(() => browser.close());
    const page = await browser.newPage();
    await page.goto(`https://opened.test:${opened.port}/`);
    await page.getByRole('button', { name: 'more' }).click();
    await page.getByText('more by TLS').waitFor();
    expect(await page.title()).toBe('by TLS');
    expect((await page.screenshot()).subarray(1, 4).toString()).toBe('PNG');
    expect(opened.seen).toEqual(expect.arrayContaining(['GET /', 'GET /more']));

    expect(await visit(browser, `https://tunnelled.test:${tunnelled.port}/`)).toBe(
      'net::ERR_CERT_AUTHORITY_INVALID',
    );
    expect(await visit(browser, `https://posing.test:${posing.port}/`)).toBe(
      'net::ERR_CERT_AUTHORITY_INVALID',
    );
    expect([...tunnelled.seen, ...posing.seen]).toEqual([]);
  });
});

describe('an image without Chromium', () => {
  it('[G12] is told what it lacks', async () => {
    const box = await makeSandbox(await (await daemonHome()).start());
    await expect(box.browser.start()).rejects.toMatchObject({ code: 'browser_failed' });
    expect(await box.ports.list()).toEqual([]);
  });
});
