/** A hostile page behind a preview, in a real browser, against another preview and against its own session. */

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Sandbox } from '../../src/sdk/sandbox.ts';
import { testDaemon } from '../support/daemon.ts';
import { hexPath, httpAnswer, serveHex } from '../support/hex-server.ts';
import { commandExists, requirement } from '../support/requires.ts';

const programs = ['chromium-headless-shell', 'chromium'];
const program = programs.find(commandExists);
const hasChromium = requirement(`${programs.join(' or ')} on this machine`, program !== undefined);

const page = hexPath(httpAnswer('<title>page</title>', { 'content-type': 'text/html' }));
const worker = hexPath(
  httpAnswer(
    `self.oninstall = () => self.skipWaiting();
self.onactivate = (event) => event.waitUntil(clients.claim());
self.onfetch = (event) => {
  if (event.request.url.endsWith('/by-worker')) event.respondWith(new Response('worker'));
};`,
    { 'content-type': 'text/javascript', 'service-worker-allowed': '/' },
  ),
);

describe.runIf(hasChromium)('[N5] a hostile page behind a preview', () => {
  let browser: Browser;
  beforeAll(async () => {
    // Chromium has no sandbox of its own as root, or where users may make no namespaces. All that it opens here is of the test.
    browser = await chromium.launch({ executablePath: `/usr/bin/${program}`, args: ['--no-sandbox'] });
  });
  afterAll(() => browser?.close());

  async function scene(): Promise<{ context: BrowserContext; enter: (port: number) => Promise<Entered> }> {
    const box = await (await testDaemon()).make();
    await Promise.all([serveHex(box, 3000), serveHex(box, 3001)]);
    const context = await browser.newContext();
    onTestFinished(() => context.close());
    return { context, enter: (port) => enter(context, box, port) };
  }

  interface Entered {
    readonly tab: Page;
    readonly origin: string;
    /** Of the page, asked for once more. */
    readonly status: () => Promise<number | undefined>;
  }

  async function enter(context: BrowserContext, box: Sandbox, port: number): Promise<Entered> {
    const { url, origin } = await box.ports.preview(port, { path: page });
    const tab = await context.newPage();
    await tab.goto(url, { waitUntil: 'commit' });
    await tab.waitForURL(`${origin}${page}`);
    expect(await tab.title()).toBe('page');
    return { tab, origin, status: async () => (await tab.goto(`${origin}${page}`))?.status() };
  }

  it('sets no cookie for another preview, and cannot change that of its own session by script', async () => {
    const { context, enter: open } = await scene();
    const victim = await open(3001);
    const hostile = await open(3000);
    const before = await context.cookies();
    expect(before.map(({ name, httpOnly }) => [name, httpOnly])).toEqual([
      ['sallyport_preview', true],
      ['sallyport_preview', true],
    ]);
    await hostile.tab.evaluate(`
      for (const domain of ['', '; domain=localhost', '; domain=.localhost', '; domain=' + location.hostname])
        for (const name of ['own', 'sallyport_preview']) document.cookie = name + '=evil; path=/' + domain;
    `);
    const after = await context.cookies();
    // The page has cookies of its own: scripts may set some. None is for another host, and ours are as they were.
    expect(after.some(({ name }) => name === 'own')).toBe(true);
    expect(after.filter(({ httpOnly }) => httpOnly)).toEqual(before);
    const host = new URL(hostile.origin).hostname;
    for (const { domain, httpOnly } of after) if (!httpOnly) expect(domain.replace(/^\./, '')).toBe(host);
    expect(await context.cookies(victim.origin)).toEqual(before.filter(({ domain }) => domain !== host));
    expect(await victim.status()).toBe(200);
    expect(await hostile.status()).toBe(200);
  });

  it('takes nothing from another preview by Clear-Site-Data, HSTS, Alt-Svc or a service worker', async () => {
    const { enter: open } = await scene();
    const victim = await open(3001);
    const hostile = await open(3000);
    await victim.tab.evaluate(`localStorage.setItem('kept', 'yes')`);
    const byWorker = `navigator.serviceWorker.register('${worker}', { scope: '/' })
      .then(() => navigator.serviceWorker.ready)
      .then(() => navigator.serviceWorker.controller ?? new Promise((done) => { navigator.serviceWorker.oncontrollerchange = done; }))
      .then(() => fetch('/by-worker')).then((answer) => answer.text())`;
    // The worker of a page is obeyed for its own preview alone.
    expect(await hostile.tab.evaluate(byWorker)).toBe('worker');
    const asked = await victim.tab.evaluate(`fetch('/by-worker').then(({ status }) => status)`);
    expect(asked).toBe(404);
    expect(await victim.tab.evaluate('String(navigator.serviceWorker.controller)')).toBe('null');
    const wiping = hexPath(
      httpAnswer('wiped', {
        'Clear-Site-Data': '"*"',
        'Strict-Transport-Security': 'max-age=31536000; includeSubDomains',
        'Alt-Svc': 'h2="127.0.0.1:1"',
      }),
    );
    await hostile.tab.evaluate(`fetch('${wiping}').then((answer) => answer.text())`);
    // The browser obeyed: the session of the page itself is gone.
    expect(await hostile.status()).toBe(401);
    expect(await victim.status()).toBe(200);
    expect(await victim.tab.evaluate(`localStorage.getItem('kept')`)).toBe('yes');
  });

  it('cannot be put into a frame, opened or asked by a page of another port of its own host name', async () => {
    const { context, enter: open } = await scene();
    const { origin } = await open(3000);
    const { hostname } = new URL(origin);
    const cookies: (string | undefined)[] = [];
    const other = createServer(({ headers }, response) => {
      cookies.push(headers.cookie);
      response.writeHead(200, { 'content-type': 'text/html' }).end('<title>other port</title>');
    }).listen(0, '127.0.0.1');
    await once(other, 'listening');
    onTestFinished(() => void other.close());
    const tab = await context.newPage();
    await tab.goto(`http://${hostname}:${(other.address() as AddressInfo).port}/`);
    // Cookies know no ports: what counts is where a request comes from.
    expect(cookies[0]).toContain('sallyport_preview=');
    const sent: (number | undefined)[] = [];
    tab.on('response', (answer) => void (answer.url().startsWith(origin) && sent.push(answer.status())));
    await tab.evaluate(`(async () => {
      await fetch('${origin}${page}', { credentials: 'include', mode: 'no-cors' }).catch(() => {});
      const frame = document.createElement('iframe');
      frame.src = '${origin}${page}';
      await new Promise((done) => { frame.onload = done; document.body.append(frame); });
    })()`);
    await Promise.all([
      tab.waitForURL(`${origin}${page}`),
      tab.evaluate(`location.href = '${origin}${page}'`),
    ]);
    expect(sent).toEqual([403, 403, 403]);
  });
});
