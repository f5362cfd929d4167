/** A place on loopback from which real clients get a file, a repository and packages: git, npm, pip and apt, by HTTPS. */

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join, normalize } from 'node:path';
import { onTestFinished } from 'vitest';
import { SandboxAuthority } from '../../src/gate/tls/sandbox-authority.ts';

/** A file, `repo.git`, the wheel `demo`. */
export async function fillSite(folder: string): Promise<void> {
  await writeFile(join(folder, 'hello'), 'hello from the test');
  const work = join(folder, 'work');
  const git = (...args: readonly string[]): void =>
    void execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t.test', ...args], {
      stdio: 'ignore',
    });
  git('init', '-q', work);
  await writeFile(join(work, 'README'), 'of the test');
  git('-C', work, 'add', '.');
  git('-C', work, 'commit', '-qm', 'first');
  git('clone', '-q', '--bare', work, join(folder, 'repo.git'));
  git('-C', join(folder, 'repo.git'), 'update-server-info');
  await mkdir(join(folder, 'simple/demo'), { recursive: true });
  const wheel = 'demo-1.0-py3-none-any.whl';
  await writeFile(join(folder, 'simple/demo/index.html'), `<a href="/${wheel}">${wheel}</a>`);
  const make = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as wheel:
    wheel.writestr('demo.py', '')
    wheel.writestr('demo-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: demo\\nVersion: 1.0\\n')
    wheel.writestr('demo-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr('demo-1.0.dist-info/RECORD', '')
`;
  execFileSync('python3', ['-c', make, join(folder, wheel)]);
}

/** Besides: `demo` for npm below `/npm/`, and a Debian package `demo` below `/debian/`. */
export async function fillPackages(folder: string): Promise<void> {
  const npm = join(folder, 'npm/package');
  await mkdir(npm, { recursive: true });
  await writeFile(join(npm, 'package.json'), JSON.stringify({ name: 'demo', version: '1.0.0' }));
  execFileSync('tar', ['-C', join(folder, 'npm'), '-czf', join(folder, 'npm/demo-1.0.0.tgz'), 'package']);
  const control =
    'Package: demo\nVersion: 1.0\nArchitecture: all\nMaintainer: t <t@t.test>\nDescription: of the test\n';
  const deb = join(folder, 'debian/demo');
  await mkdir(join(deb, 'DEBIAN'), { recursive: true });
  await writeFile(join(deb, 'DEBIAN/control'), control);
  const file = join(folder, 'debian/demo_1.0_all.deb');
  execFileSync('dpkg-deb', ['--root-owner-group', '-b', deb, file], { stdio: 'ignore' });
  const content = await readFile(file);
  const sha256 = createHash('sha256').update(content).digest('hex');
  const where = `Filename: debian/demo_1.0_all.deb\nSize: ${content.length}\nSHA256: ${sha256}\n`;
  await writeFile(join(folder, 'debian/Packages'), `${control}${where}`);
}

export interface PackageSite {
  readonly port: number;
  readonly root: string;
  /** `host path authorization` of each request. */
  readonly asked: string[];
}

/** Is every host that it is asked for, by an authority of its own. */
export async function serveSite(folder: string): Promise<PackageSite> {
  const authority = SandboxAuthority.create('the world', new Date());
  const asked: string[] = [];
  const options = {
    SNICallback: (
      name: string,
      done: (error: null, context: ReturnType<typeof authority.contextFor>) => void,
    ) => done(null, authority.contextFor(name)),
  };
  const server = createServer(options, (request, answer) => {
    const path = normalize(new URL(request.url ?? '/', 'https://x').pathname);
    asked.push(`${request.headers.host} ${path} ${request.headers.authorization ?? 'none'}`);
    contentOf(folder, path, request.headers.host ?? '').then(
      (content) => {
        answer.setHeader('content-type', path.endsWith('/') ? 'text/html' : 'application/octet-stream');
        answer.end(content);
      },
      () => answer.writeHead(404).end(),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, root: authority.certificatePem, asked };
}

async function contentOf(folder: string, path: string, host: string): Promise<Buffer | string> {
  if (path !== '/npm/demo')
    return await readFile(join(folder, path.endsWith('/') ? `${path}index.html` : path));
  const tarball = await readFile(join(folder, 'npm/demo-1.0.0.tgz'));
  const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`;
  const dist = { tarball: `https://${host}/npm/demo-1.0.0.tgz`, integrity };
  const version = { name: 'demo', version: '1.0.0', dist };
  return JSON.stringify({ name: 'demo', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': version } });
}
