/** An HTTPS server of the benchmarks: `/0` is small, `/<bytes>` is as large as it says. */

import https from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import type { SandboxAuthority } from '../src/gate/tls/sandbox-authority.ts';

const piece = Buffer.alloc(64 * 1024, 7);

export async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

export function originServer(authority: SandboxAuthority): https.Server {
  const context = (name: string) => authority.contextFor(name);
  return https.createServer(
    { SNICallback: (name, done) => done(null, context(name)) },
    (request, response) => {
      let left = Number(request.url?.slice(1));
      if (left === 0) {
        response.end('ok');
        return;
      }
      response.setHeader('content-length', left);
      const more = (): void => {
        while (left > 0) {
          const next = piece.subarray(0, Math.min(left, piece.length));
          left -= next.length;
          if (!response.write(next)) {
            response.once('drain', more);
            return;
          }
        }
        response.end();
      };
      more();
    },
  );
}
