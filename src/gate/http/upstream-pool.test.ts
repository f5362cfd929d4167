import http from 'node:http';
import { Duplex } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { LoopbackSession, listen, listenRelay, talk } from '../../../test/support/loopback-gate.ts';
import { deferred } from '../../lib/deferred.ts';
import type { EgressSession } from '../contract.ts';
import { relayHttp } from './relay.ts';
import type { Upstream } from './upstream.ts';
import { UpstreamPool } from './upstream-pool.ts';

/** Says when a client has left a connection behind. */
class WatchedPool extends UpstreamPool {
  #gave = deferred<void>();

  override give(upstream: Upstream): void {
    super.give(upstream);
    this.#gave.resolve();
  }

  async given(): Promise<void> {
    await this.#gave.promise;
    this.#gave = deferred<void>();
  }
}

async function world(denies?: (path: string | undefined) => boolean) {
  const server = http.createServer((request, response) => response.end(`${request.method} ${request.url}`));
  const port = await listen(server);
  const session = new LoopbackSession({
    ports: { 'allowed.test': port },
    denies: ({ path }) => denies?.(path) === true,
  });
  const pool = new WatchedPool();
  const proxy = await listenRelay(session, { entrance: 'http', scheme: 'http', pool });
  const ask = async (method: string, path: string, extra = ''): Promise<string> => {
    const line = `${method} http://allowed.test${path} HTTP/1.1`;
    return await talk(proxy, `${line}\r\nHost: allowed.test\r\nConnection: close\r\n${extra}\r\n`);
  };
  return { server, session, pool, ask };
}

describe('connections that a client leaves behind', () => {
  it('[R6] serve the next GET of the sandbox, which is judged by itself', async () => {
    const { session, pool, ask } = await world((path) => path?.startsWith('/secret') === true);
    expect(await ask('GET', '/one')).toContain('GET /one');
    await pool.given();
    expect(await ask('GET', '/secret')).toMatch(/^HTTP\/1\.1 403 /);
    expect(await ask('GET', '/two')).toContain('GET /two');
    await pool.given();
    expect(session.dialled).toHaveLength(1);
    expect(session.outcomes.map(({ decision }) => decision.allowed)).toEqual([true, false, true]);
    // It may be closed under what goes out: what must not go out twice gets one of its own.
    expect(await ask('POST', '/three', 'Content-Length: 0\r\n')).toContain('POST /three');
    expect(session.dialled).toHaveLength(2);
  });

  it('[R7] are nobody else’s when a login counts for the connection', async () => {
    const { session, pool, ask } = await world();
    await ask('GET', '/', 'Authorization: NTLM TlRMTVNTUAAB\r\n');
    await pool.given();
    await ask('GET', '/');
    expect(session.dialled).toHaveLength(2);
  });

  it('are opened anew when the server has closed them, and closed with the gate', async () => {
    const { server, session, pool, ask } = await world();
    await ask('GET', '/one');
    await pool.given();
    server.closeAllConnections();
    expect(await ask('GET', '/two')).toContain('GET /two');
    expect(session.dialled).toHaveLength(2);
    await pool.given();
    pool.close();
    await allClosed(server);
    await ask('GET', '/three');
    expect(session.dialled).toHaveLength(3);
  });
});

/** When the server has lost its last connection. */
async function allClosed(server: http.Server): Promise<void> {
  const count = async (): Promise<number> =>
    await new Promise((resolve) => server.getConnections((_error, open) => resolve(open)));
  await expect.poll(count, { timeout: 10_000 }).toBe(0);
}

describe('an answer that comes with the end of its connection', () => {
  it('is read whole, whenever it comes', async () => {
    const answering = new Duplex({
      read() {},
      write(_chunk, _encoding, done) {
        this.push('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
        this.push(null);
        done();
      },
    });
    const told: string[] = [];
    const client = new Duplex({
      read() {},
      write(chunk: Buffer, _encoding, done) {
        told.push(chunk.toString());
        done();
      },
    });
    const session: EgressSession = {
      sandbox: 'box',
      decide: (attempt) => ({ allowed: true, attempt, rule: 'all', inspect: false }),
      dial: () => Promise.resolve(answering),
      report: () => {},
    };
    const { signal } = new AbortController();
    const relayed = relayHttp(client, session, { entrance: 'http', scheme: 'http', signal });
    client.push('GET http://a.test/ HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n');
    client.push(null);
    await relayed;
    expect(told.join('')).toMatch(/^HTTP\/1\.1 200 OK\r\n.*\r\n\r\nok$/s);
  });
});
