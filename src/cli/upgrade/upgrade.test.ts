import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { SallyportError } from '../../protocol/errors.ts';
import { installLines } from './install-lines.ts';
import { readLatest, releasePlace } from './latest-release.ts';

const sha256 = 'a'.repeat(64);
const files = ['sallyport-0.3.0.tgz', 'sallyport-0.3.0-linux-x64.tar.gz'].map((name) => ({ name, sha256 }));
const latest = { version: '0.3.0', date: '2027-01-31', files, changelog: '### Added\n\n- More.' };
const { signal } = new AbortController();

async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/releases`;
}

describe('the newest release', () => {
  it('[N23] is read from a folder', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sallyport-latest-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    writeFileSync(join(folder, 'latest.json'), JSON.stringify(latest));
    expect(await readLatest(releasePlace(folder), signal)).toEqual(latest);
  });

  it('[N23] is read by one GET without any fact about this machine', async () => {
    const asked: unknown[] = [];
    const url = await serve(({ method, url: path, headers }, answer) => {
      asked.push([method, path, Object.keys(headers).sort()]);
      answer.end(JSON.stringify({ ...latest, more: 'of a later version' }));
    });
    expect(await readLatest(releasePlace(`${url}/`), signal)).toEqual(latest);
    expect(asked).toEqual([['GET', '/releases/latest.json', ['accept', 'connection', 'host']]]);
  });

  it.each<readonly [string, RequestListener, string]>([
    ['that redirects', (_, answer) => answer.writeHead(302, { location: '/other' }).end(), 'release_invalid'],
    ['without it', (_, answer) => answer.writeHead(404).end(), 'release_invalid'],
    ['that sends no end of it', (_, answer) => void flood(answer), 'release_invalid'],
    ['that sends a page', (_, answer) => answer.end('<html>'), 'release_invalid'],
    ['with a path for a file name', (_, answer) => answer.end(withFile('../x')), 'release_invalid'],
    [
      'with words for a version',
      (_, answer) => answer.end(JSON.stringify({ ...latest, version: '1; rm' })),
      'release_invalid',
    ],
    ['that hangs up', (request) => request.socket.destroy(), 'release_unreachable'],
  ])('[N23] is not taken from a server %s', async (_what, answer, code) => {
    const place = releasePlace(await serve(answer));
    await expect(readLatest(place, signal)).rejects.toMatchObject({ code });
  });

  it('[N23] is not waited for after Ctrl-C', async () => {
    const abort = new AbortController();
    const reason = new SallyportError('cancelled', 'it was interrupted');
    const url = await serve(() => abort.abort(reason));
    await expect(readLatest(releasePlace(url), abort.signal)).rejects.toBe(reason);
  });

  it('[N23] is refused from an address that is neither HTTP nor a folder', () => {
    expect(() => releasePlace('ftp://host/x')).toThrow(expect.objectContaining({ code: 'config_invalid' }));
    expect(() => releasePlace('https://')).toThrow(expect.objectContaining({ code: 'config_invalid' }));
  });

  it('[N23] is shown without the password of its URL, and plain HTTP is noted', () => {
    const place = releasePlace('http://ada:secret@releases.test/x');
    expect(place.locate('latest.json')).toBe('http://releases.test/x/latest.json');
    expect(place.isOpen).toBe(true);
    expect(releasePlace('https://releases.test/x').isOpen).toBe(false);
  });
});

const withFile = (name: string): string => JSON.stringify({ ...latest, files: [{ name, sha256 }] });

function flood(answer: { write(text: string, done: (error?: Error | null) => void): void }): void {
  answer.write('x'.repeat(2 ** 16), (error) => {
    if (error == null) flood(answer);
  });
}

describe('the commands that install a release', () => {
  const place = releasePlace('https://releases.test/s');

  it('[N23] are those of npm where npm installed the program', () => {
    const installation = { kind: 'npm-global', prefix: '/opt/node' } as const;
    expect(installLines(installation, latest, place, 'x64')).toEqual([
      'npm install -g --prefix /opt/node https://releases.test/s/sallyport-0.3.0.tgz',
    ]);
  });

  it('[N23] check the hash where an archive did, and quote what the shell would read', () => {
    const installation = { kind: 'archive', prefix: '/home/a b/.local' } as const;
    expect(installLines(installation, latest, place, 'x64')).toEqual([
      'curl -fsSO https://releases.test/s/sallyport-0.3.0-linux-x64.tar.gz',
      `echo '${sha256}  sallyport-0.3.0-linux-x64.tar.gz' | sha256sum -c`,
      'tar -xzf sallyport-0.3.0-linux-x64.tar.gz',
      "./sallyport-0.3.0-linux-x64/install.sh --prefix '/home/a b/.local'",
    ]);
  });

  it('[N23] are absent where the release has nothing for this architecture', () => {
    expect(installLines({ kind: 'archive', prefix: '/usr/local' }, latest, place, 'arm64')).toBeUndefined();
  });
});
