/**
 * A registry of npm on loopback: takes what `npm publish` sends, and gives it to `npm install`. The dependencies that it has are
 * those of this checkout, packed again from `node_modules`; what it lacks is 404, so nothing comes from anywhere else.
 */

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, relative } from 'node:path';
import { json } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { packTar } from 'modern-tar';

interface Manifest {
  readonly name: string;
  readonly version: string;
}

interface Published {
  readonly manifest: Manifest;
  readonly tarball: Buffer;
}

/** What `npm publish` sends. */
interface Publication {
  readonly name: string;
  readonly versions: Readonly<Record<string, Manifest>>;
  readonly _attachments: Readonly<Record<string, { readonly data: string }>>;
}

export interface NpmRegistry {
  readonly url: string;
  /** For the user's configuration of npm: this registry and no other, and who may publish to it. */
  readonly configuration: string;
  /** `GET /name` and the like. */
  readonly asked: string[];
  readonly close: () => void;
}

const token = 'token-of-the-test';

/** `modules`: a folder `node_modules`; it has the packages of these names. */
export async function npmRegistry(modules: string, names: readonly string[]): Promise<NpmRegistry> {
  const packages = new Map<string, Published>();
  for (const name of names) packages.set(name, await packModule(join(modules, name)));
  const asked: string[] = [];
  const server = createServer((request, answer) => {
    const path = decodeURIComponent(new URL(request.url ?? '/', 'http://x').pathname);
    asked.push(`${request.method} ${path}`);
    const reply = (status: number, body: object | Buffer): void => {
      answer.writeHead(status).end(Buffer.isBuffer(body) ? body : JSON.stringify(body));
    };
    if (request.method === 'PUT') {
      void publish(request, packages).then((status) => reply(status, { ok: status === 201 }));
      return;
    }
    const [, name = '', isTarball] = /^\/((?:@[^/]+\/)?[^/]+)(\/-\/.*)?$/.exec(path) ?? [];
    const found = packages.get(name);
    if (found === undefined) reply(404, { error: 'not found' });
    else reply(200, isTarball === undefined ? packument(found, url()) : found.tarball);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const url = (): string => `http://${host}`;
  return {
    url: url(),
    configuration: `registry=${url()}/\n//${host}/:_authToken=${token}\n`,
    asked,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function publish(request: IncomingMessage, packages: Map<string, Published>): Promise<number> {
  if (request.headers.authorization !== `Bearer ${token}`) return 401;
  const { name, versions, _attachments: attachments } = (await json(request)) as Publication;
  const [manifest] = Object.values(versions);
  const [attached] = Object.values(attachments);
  if (manifest === undefined || attached === undefined || packages.has(name)) return 409;
  packages.set(name, { manifest, tarball: Buffer.from(attached.data, 'base64') });
  return 201;
}

function packument({ manifest, tarball }: Published, url: string): object {
  const { name, version } = manifest;
  const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`;
  const shasum = createHash('sha1').update(tarball).digest('hex');
  const dist = { integrity, shasum, tarball: `${url}/${name}/-/${name.replace(/^.*\//, '')}-${version}.tgz` };
  return { name, 'dist-tags': { latest: version }, versions: { [version]: { ...manifest, dist } } };
}

async function packModule(folder: string): Promise<Published> {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
  const files = readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  const entries = files.map((file) => {
    const body = readFileSync(file);
    const header = { name: `package/${relative(folder, file)}`, size: body.length, mtime: new Date(0) };
    return { header, body };
  });
  return { manifest, tarball: gzipSync(await packTar(entries), { level: 1 }) };
}
