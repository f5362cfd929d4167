import { once } from 'node:events';
import net from 'node:net';
import { PassThrough } from 'node:stream';
import tls from 'node:tls';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readClientHello, serverNameProblem } from './client-hello.ts';
import { parseClientHello, TlsViolation } from './parse-client-hello.ts';

/** The first bytes of a real client. */
async function realHello(options: tls.ConnectionOptions): Promise<Buffer> {
  const server = net.createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as net.AddressInfo;
  const client = tls.connect({ ...options, port, host: '127.0.0.1' });
  client.on('error', () => {});
  const [socket] = (await once(server, 'connection')) as [net.Socket];
  const [bytes] = (await once(socket, 'data')) as [Buffer];
  onTestFinished(() => {
    client.destroy();
    socket.destroy();
    server.close();
  });
  return bytes;
}

/** The same message in records of at most so many bytes. */
function inRecords(hello: Buffer, size: number): Buffer {
  const message = hello.subarray(5);
  const records: Buffer[] = [];
  for (let at = 0; at < message.length; at += size) {
    const part = message.subarray(at, at + size);
    records.push(Buffer.from([22, 3, 1, part.length >> 8, part.length & 255]), part);
  }
  return Buffer.concat(records);
}

const name = { host: 'allowed.test', port: 443, isAddress: false };

describe('the ClientHello', () => {
  it('[R6] is read whole, split over records and byte by byte, and nothing of it is lost', async () => {
    const hello = await realHello({ servername: 'Allowed.test', ALPNProtocols: ['h2', 'http/1.1'] });
    for (const bytes of [hello, inRecords(hello, 1), inRecords(hello, 50)]) {
      const stream = new PassThrough();
      const read = readClientHello(stream);
      for (const byte of bytes) stream.write(Buffer.from([byte]));
      const result = await read;
      expect(result).toMatchObject({ serverName: 'allowed.test', alpn: ['h2', 'http/1.1'] });
      expect('bytes' in result && Buffer.concat([result.bytes, stream.read() ?? Buffer.alloc(0)])).toEqual(
        bytes,
      );
    }
  });

  it('without a name, with another name and with the right one are told apart', async () => {
    const facts = async (options: tls.ConnectionOptions) => {
      const parsed = parseClientHello(await realHello(options));
      return parsed.state === 'whole' ? parsed.facts : { alpn: [] };
    };
    const none = await facts({});
    expect(serverNameProblem(none, name)?.code).toBe('sni_missing');
    expect(serverNameProblem(none, { host: '198.51.100.1', port: 443, isAddress: true })).toBeUndefined();
    const other = await facts({ servername: 'evil.test' });
    expect(serverNameProblem(other, name)?.code).toBe('sni_mismatch');
    expect(serverNameProblem(other, { host: '198.51.100.1', port: 443, isAddress: true })?.code).toBe(
      'sni_mismatch',
    );
    expect(serverNameProblem(await facts({ servername: 'allowed.test' }), name)).toBeUndefined();
  });

  it('what is no TLS is given back as it came, also when the client closes at once', async () => {
    const stream = new PassThrough();
    stream.write('SSH-2.0-x\r\n');
    expect(await readClientHello(stream)).toEqual({ notTls: Buffer.from('SSH-2.0-x\r\n') });
    const closed = new PassThrough();
    closed.end();
    expect(await readClientHello(closed)).toEqual({ notTls: Buffer.alloc(0) });
  });

  it('a malformed, repeated, too large or slow one is refused', async () => {
    const hello = await realHello({ servername: 'allowed.test' });
    const sni = hello.indexOf(Buffer.from([0, 0, 0, 17, 0, 15]));
    expect(sni).toBeGreaterThan(0);
    const changed = (at: number, value: number): Buffer => {
      const copy = Buffer.from(hello);
      copy[at] = value;
      return copy;
    };
    // Another type of message, another record in between, a length that does not fit, a list that does not fit.
    for (const bytes of [changed(5, 2), changed(8, 1), changed(sni + 3, 16), changed(sni + 6, 1)]) {
      expect(() => parseClientHello(bytes)).toThrow(TlsViolation);
    }
    const interrupted = Buffer.concat([
      inRecords(hello, 40).subarray(0, 45),
      Buffer.from([23, 3, 1, 0, 1, 0]),
    ]);
    expect(() => parseClientHello(interrupted)).toThrow(TlsViolation);
    const huge = Buffer.alloc(
      70_000,
      inRecords(Buffer.concat([Buffer.alloc(5), Buffer.from([1, 0, 255, 255]), Buffer.alloc(12)]), 16),
    );
    expect(() => parseClientHello(huge)).toThrow(TlsViolation);
    const slow = new PassThrough();
    slow.write(hello.subarray(0, 30));
    await expect(readClientHello(slow, { timeoutMs: 50, maxBytes: 65_536 })).rejects.toThrow(TlsViolation);
  });

  it('whatever comes, the parser answers or refuses, and never reads past its input', async () => {
    const hello = await realHello({ servername: 'allowed.test', ALPNProtocols: ['h2'] });
    fc.assert(
      fc.property(fc.nat(hello.length - 1), fc.nat(255), fc.nat(hello.length), (at, value, length) => {
        const copy = Buffer.from(hello);
        copy[at] = value;
        for (const bytes of [copy, copy.subarray(0, length)]) {
          try {
            parseClientHello(bytes);
          } catch (error) {
            if (!(error instanceof TlsViolation)) throw error;
          }
        }
      }),
      { numRuns: 2000 },
    );
  });
});
