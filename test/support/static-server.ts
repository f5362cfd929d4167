/** Files of a folder by HTTP, on loopback. */

import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, normalize } from 'node:path';
import { onTestFinished } from 'vitest';

export async function serveFolder(
  folder: string,
): Promise<{ readonly port: number; readonly asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, answer) => {
    const path = normalize(new URL(request.url ?? '/', 'http://x').pathname);
    asked.push(`${request.headers.host} ${path}`);
    readFile(join(folder, path.endsWith('/') ? `${path}index.html` : path)).then(
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
  return { port: (server.address() as AddressInfo).port, asked };
}
