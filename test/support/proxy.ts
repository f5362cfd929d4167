/** Ways to the real engine other than its socket: a plain TCP port, and one with TLS. */

import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import net, { type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import tls from 'node:tls';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';

const run = promisify(execFile);

function forward(socketPath: string): (client: Socket) => void {
  return (client) => {
    const engine = net.connect({ path: socketPath });
    client.on('error', () => engine.destroy());
    engine.on('error', () => client.destroy());
    client.on('close', () => engine.destroy());
    client.pipe(engine).pipe(client);
  };
}

/** On a free port of the loopback interface, until the test ends. */
async function serve(server: net.Server): Promise<number> {
  const clients = new Set<Socket>();
  server.on('connection', (client: Socket) => {
    clients.add(client);
    client.on('close', () => clients.delete(client));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    for (const client of clients) client.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}

export async function tcpProxy(socketPath: string): Promise<number> {
  return await serve(net.createServer(forward(socketPath)));
}

/** Demands a client certificate of the same CA, as an engine with `--tlsverify` does. */
export async function tlsProxy(socketPath: string, pki: Pki): Promise<number> {
  const options = {
    ca: readFileSync(pki.caPath),
    cert: readFileSync(pki.serverCertPath),
    key: readFileSync(pki.serverKeyPath),
    requestCert: true,
    rejectUnauthorized: true,
  };
  const server = tls.createServer(options, forward(socketPath));
  server.on('tlsClientError', () => {});
  return await serve(server);
}

export interface Pki {
  /** As `DOCKER_CERT_PATH` wants it: ca.pem, cert.pem and key.pem of a client. */
  readonly clientFolder: string;
  readonly caPath: string;
  readonly serverCertPath: string;
  readonly serverKeyPath: string;
}

/** A CA, a server named `localhost` and a client, made by openssl. */
export async function makePki(folder: string): Promise<Pki> {
  const at = (name: string): string => join(folder, name);
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const ca = [
    '-x509',
    '-days',
    '2',
    '-subj',
    '/CN=test CA',
    '-keyout',
    at('ca-key.pem'),
    '-out',
    at('ca.pem'),
  ];
  await run('openssl', ['req', ...newKey, ...ca]);
  writeFileSync(at('server.ext'), 'subjectAltName=DNS:localhost\nextendedKeyUsage=serverAuth\n');
  writeFileSync(at('client.ext'), 'extendedKeyUsage=clientAuth\n');
  for (const [who, cert, key] of [
    ['server', 'server-cert.pem', 'server-key.pem'],
    ['client', 'cert.pem', 'key.pem'],
  ] as const) {
    const csr = at(`${who}.csr`);
    await run('openssl', ['req', ...newKey, '-subj', `/CN=${who}`, '-keyout', at(key), '-out', csr]);
    const signer = ['-CA', at('ca.pem'), '-CAkey', at('ca-key.pem'), '-CAcreateserial'];
    const signed = ['-extfile', at(`${who}.ext`), '-days', '2', '-out', at(cert)];
    await run('openssl', ['x509', '-req', '-in', csr, ...signer, ...signed]);
  }
  return {
    clientFolder: folder,
    caPath: at('ca.pem'),
    serverCertPath: at('server-cert.pem'),
    serverKeyPath: at('server-key.pem'),
  };
}
