/** Templates: what they get from npm, and what of the host's npm must not be in them. The real ones are made in full runs. */

import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { packTar } from 'modern-tar';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { removeContainer } from '../../src/engines/docker/containers/remove.ts';
import { waitForExit } from '../../src/engines/docker/containers/wait.ts';
import { dockerImageEngine } from '../../src/engines/docker/image-engine.ts';
import { checkPromises } from '../../src/images/check-promises.ts';
import { type EnsureTemplateOptions, ensureTemplate } from '../../src/images/ensure-template.ts';
import { ProvisionGate } from '../../src/images/gate.ts';
import { readTemplate, templateNames, templatePlace } from '../../src/images/template.ts';
import { silent } from '../../src/lib/progress.ts';
import { runContainer, testEngine } from '../support/engine.ts';
import { buildLayer } from '../support/image-layer.ts';
import { madeUpHere } from '../support/made-up-template.ts';
import { commandExists, requirement } from '../support/requires.ts';
import { realClients, when } from '../support/selection.ts';

const test = testEngine();
const { connection, labels } = test;
const engine = dockerImageEngine(connection);

const token = `npm_${randomBytes(18).toString('hex')}`;
const tool = 'made-up-tool';

interface Registry {
  readonly host: string;
  readonly integrity: string;
  /** What was asked for, with whether the token came with it. */
  readonly asked: { readonly path: string; readonly trusted: boolean }[];
  readonly close: () => Promise<void>;
}

/** A package registry with one package, which has an install script that must not run, and wants the token. */
async function startNpmRegistry(): Promise<Registry> {
  const manifest = { name: tool, version: '1.2.3', bin: { [tool]: 'tool.sh' } };
  const scripts = { postinstall: 'touch ran-its-script' };
  const files = {
    'package/package.json': JSON.stringify({ ...manifest, scripts }),
    'package/tool.sh': '#!/bin/sh\necho made-up 1.2.3\n',
  };
  const tarball = gzipSync(
    await packTar(
      Object.entries(files).map(([name, text]) => ({
        header: { name, type: 'file' as const, size: text.length, mode: 0o755 },
        body: text,
      })),
    ),
  );
  const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`;
  const asked: Registry['asked'] = [];
  const server = createServer((request, response) => {
    const { port } = server.address() as AddressInfo;
    const trusted = request.headers.authorization === `Bearer ${token}`;
    asked.push({ path: request.url ?? '', trusted });
    if (!trusted) response.writeHead(401).end();
    else if (request.url?.endsWith('.tgz') === true) response.end(tarball);
    else {
      const dist = { tarball: `http://127.0.0.1:${port}/${tool}/-/${tool}-1.2.3.tgz`, integrity };
      const versions = { '1.2.3': { ...manifest, hasInstallScript: true, dist } };
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ name: tool, 'dist-tags': { latest: '1.2.3' }, versions }));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { host: `127.0.0.1:${port}`, integrity, asked, close };
}

const lockFile = (integrity: string): string =>
  JSON.stringify({
    name: 'made-up',
    lockfileVersion: 3,
    requires: true,
    packages: {
      '': { name: 'made-up', dependencies: { [tool]: '1.2.3' } },
      [`node_modules/${tool}`]: {
        version: '1.2.3',
        integrity,
        hasInstallScript: true,
        bin: { [tool]: 'tool.sh' },
      },
    },
  });

const linked = `ln -s /opt/sallyport/npm/node_modules/.bin/${tool} /usr/local/bin/${tool}`;

const withTool = (integrity: string) =>
  madeUpHere({
    install: linked,
    smoke: `${tool} | grep -qx 'made-up 1.2.3'`,
    lines: 'COPY npm/ /opt/sallyport/npm/',
    files: {
      'package.json': JSON.stringify({ name: 'made-up', dependencies: { [tool]: '1.2.3' } }),
      'package-lock.json': lockFile(integrity),
    },
  });

const hasNpm = requirement('npm', commandExists('npm'));

describe.runIf(hasNpm)('npm packages of a template', { timeout: 120_000 }, () => {
  let registry: Registry;
  let temp: string;
  const before = process.env['NPM_CONFIG_USERCONFIG'];
  const options = (more: Partial<EnsureTemplateOptions> = {}): EnsureTemplateOptions => ({
    engine,
    progress: silent,
    consent: async () => true,
    offline: true,
    labels: labels(),
    tempDir: temp,
    ...more,
  });

  beforeAll(async () => {
    registry = await startNpmRegistry();
    temp = await mkdtemp(join(tmpdir(), 'sallyport-templates-'));
    const settings = join(temp, 'npmrc');
    const { host } = registry;
    const lines = [
      `registry=http://${host}/`,
      `//${host}/:_authToken=${token}`,
      `cache=${join(temp, 'cache')}`,
    ];
    await writeFile(settings, `${lines.join('\n')}\n`);
    process.env['NPM_CONFIG_USERCONFIG'] = settings;
  });
  afterAll(async () => {
    if (before === undefined) delete process.env['NPM_CONFIG_USERCONFIG'];
    else process.env['NPM_CONFIG_USERCONFIG'] = before;
    await registry.close();
    await rm(temp, { recursive: true, force: true });
  });

  it("[R1] are fetched with the host's own settings, without their scripts, and nothing of the settings is in the image", async () => {
    const place = await withTool(registry.integrity);
    const made = await ensureTemplate(place, options());
    onTestFinished(async () => {
      for (const tag of [made.reference, `sallyport-${place.name}:latest`]) await engine.remove(tag);
    });
    expect(registry.asked.filter(({ trusted }) => trusted).length).toBeGreaterThan(0);
    const secrets = [token, registry.host].map((text) => `-e ${text}`).join(' ');
    const look = `grep -rlaF ${secrets} --exclude-dir=proc --exclude-dir=sys / 2>/dev/null | grep . && exit 1; exit 0`;
    expect(await exitCodeIn(made.id, look)).toBe(0);
    const absent = 'cd /opt/sallyport/npm/node_modules && test ! -e made-up-tool/ran-its-script';
    expect(await exitCodeIn(made.id, `${absent} && test ! -e .package-lock.json && made-up-tool`)).toBe(0);
    const history = await connection.json<unknown>({ method: 'GET', path: `/images/${made.id}/history` });
    const config = await connection.json<unknown>({ method: 'GET', path: `/images/${made.id}/json` });
    expect(JSON.stringify([history, config])).not.toContain(token);
    expect((await readdir(temp)).filter((name) => name.startsWith('sallyport-npm-'))).toEqual([]);
  });

  it('[R1] are refused when they are not what the lock file names, and leave nothing', async () => {
    const wrong = `sha512-${createHash('sha512').update('another package').digest('base64')}`;
    const place = await withTool(wrong);
    const attempt = ensureTemplate(place, options());
    await expect(attempt).rejects.toMatchObject({
      code: 'npm_failed',
      message: expect.stringMatching(/integrity/i),
    });
    const { repository, tag } = await readTemplate(place, await engine.architecture());
    expect(await engine.find(`${repository}:${tag}`)).toBeUndefined();
    expect((await readdir(temp)).filter((name) => name.startsWith('sallyport-npm-'))).toEqual([]);
  });
});

async function exitCodeIn(image: string, script: string): Promise<number> {
  const id = await runContainer(test, script, { image, User: '0:0' });
  try {
    return await waitForExit(connection, id, { timeoutMs: 120_000 });
  } finally {
    await removeContainer(connection, id);
  }
}

/** Gigabytes, and minutes: kept as the caches that they are, and removed only by who wants to. */
when(realClients).describe('the templates of the package', () => {
  it.each(templateNames)(
    '[R1] [G8] [G12] %s is made, and keeps its promises inside a sandbox',
    {
      timeout: 1_200_000,
    },
    async (name) => {
      const made = await ensureTemplate(name, { engine, progress: silent, consent: async () => true });
      const { promises } = await readTemplate(templatePlace(name), await engine.architecture());
      expect(
        await checkPromises(engine, { image: made.id, promises, marker: true, labels: labels() }),
      ).toEqual([]);
    },
  );

  it('[R1] the claude template has gcc, rg and claude', { timeout: 1_200_000 }, async () => {
    const made = await ensureTemplate('claude', { engine, progress: silent, consent: async () => true });
    expect(await exitCodeIn(made.id, 'which gcc rg && claude --version')).toBe(0);
  });

  it('[G10] one that lost a program of a package gets it back', { timeout: 600_000 }, async () => {
    const made = await ensureTemplate('coding', { engine, progress: silent, consent: async () => true });
    const lost = await buildLayer(test, made.reference, 'RUN rm /usr/bin/rg');
    await engine.tag(lost, 'sallyport-coding', 'lost');
    onTestFinished(() => engine.remove('sallyport-coding:lost'));
    expect(await exitCodeIn(lost, 'rg --version')).not.toBe(0);
    const facts = await engine.find('sallyport-coding:lost');
    if (facts === undefined) throw new Error('the image is not there');
    const warnings: string[] = [];
    const passed = new Set<string>();
    const gate = new ProvisionGate({
      engine,
      passed,
      report: (message) => warnings.push(message),
      labels: labels(),
    });
    const repaired = await gate.pass(facts, 'sallyport-coding:lost', { progress: silent });
    expect(warnings).toEqual([expect.stringContaining('provisioned again')]);
    expect(await exitCodeIn(repaired, 'rg --version')).toBe(0);
  });
});
