import { describe, expect, it } from 'vitest';
import { httpServer, pingServer, rawServer } from '../../../test/support/little-engine.ts';
import { connect, negotiateApi, newestApi } from './connect.ts';

describe('negotiateApi', () => {
  it.each([
    ['1.41', '1.41'],
    ['1.43', '1.43'],
    [newestApi, newestApi],
    ['1.99', newestApi],
    ['1.100', newestApi],
    ['2.0', newestApi],
  ])('speaks with a server of %s in %s', (server, spoken) => {
    expect(negotiateApi(server, 'unix:///x')).toBe(spoken);
  });

  it.each([
    ['1.40', 'engine_too_old'],
    ['1.9', 'engine_too_old'],
    ['0.99', 'engine_too_old'],
    ['', 'engine_protocol'],
    ['latest', 'engine_protocol'],
    ['1.41.2', 'engine_protocol'],
    ['1.', 'engine_protocol'],
  ])('refuses a server of %j as %s', (server, code) => {
    expect(() => negotiateApi(server, 'unix:///x')).toThrow(expect.objectContaining({ code }));
  });
});

describe('connect', () => {
  it('refuses an engine that is too old, naming both versions', async () => {
    const path = await pingServer('1.40');
    await expect(connect({ kind: 'unix', path })).rejects.toMatchObject({
      code: 'engine_too_old',
      message: expect.stringMatching(/1\.40.*1\.41/),
    });
  });

  it('takes what does not speak HTTP for no engine', async () => {
    const path = await rawServer((socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n'));
    await expect(connect({ kind: 'unix', path })).rejects.toMatchObject({ code: 'engine_protocol' });
  });

  it.each([200, 301, 404])('takes a web server that answers a ping with %d for no engine', async (status) => {
    const path = await httpServer((_request, response) => response.writeHead(status).end('hello'));
    await expect(connect({ kind: 'unix', path })).rejects.toMatchObject({ code: 'engine_protocol' });
  });

  it('reports an engine that answers a ping with an error in its own words', async () => {
    const path = await httpServer((_request, response) => response.writeHead(500).end('{"message":"sick"}'));
    await expect(connect({ kind: 'unix', path })).rejects.toMatchObject({
      code: 'engine_failed',
      message: expect.stringContaining('sick'),
    });
  });

  it('gives up on an engine that accepts and never answers, within the deadline', async () => {
    const path = await rawServer(() => {});
    const started = performance.now();
    await expect(connect({ kind: 'unix', path }, { timeoutMs: 200 })).rejects.toMatchObject({
      code: 'engine_timeout',
      details: { timeoutMs: 200 },
    });
    expect(performance.now() - started).toBeLessThan(2_000);
  });

  it('says so when there is no certificate where one must be', async () => {
    const endpoint = {
      kind: 'tcp',
      host: '127.0.0.1',
      port: 1,
      tls: { caPath: '/nowhere/ca.pem', skipVerify: false },
    } as const;
    await expect(connect(endpoint)).rejects.toMatchObject({
      code: 'engine_endpoint_invalid',
      message: expect.stringContaining('/nowhere/ca.pem'),
    });
  });
});
