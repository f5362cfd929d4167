import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { request } from 'node:http';
import { describe, expect, it } from 'vitest';
import { littleDaemon, testEngineKey } from '../../test/support/little-daemon.ts';
import { deferred } from '../lib/deferred.ts';
import { SallyportError } from '../protocol/errors.ts';
import { allRoutes } from './routes/all.ts';

const errorOf = (answer: { readonly json: unknown }): Record<string, unknown> =>
  (answer.json as { error: Record<string, unknown> }).error;

describe('the daemon over HTTP', () => {
  it('listens on a socket that only its user may open', async () => {
    const { socketPath } = await littleDaemon();
    expect((await stat(socketPath)).mode & 0o777).toBe(0o600);
  });

  it('answers every JSON route as its schema says', async () => {
    const { ask, sandboxes } = await littleDaemon();
    await ask('POST', '/v1/sandboxes', { body: JSON.stringify({ spec: { name: 'box' } }) });
    const [box] = sandboxes.all;
    const started = await ask('POST', '/v1/sandboxes/box/execs', { body: '{"argv":["true"]}' });
    const [exec] = box?.all ?? [];
    await exec?.exit(0);
    expect(started.status).toBe(201);
    const question = await ask('POST', '/v1/approvals', { body: '{"command":"rm -rf /"}' });
    const { id: approval } = question.json as { readonly id: string };
    await ask('DELETE', `/v1/approvals/${approval}`);
    let checked = 0;
    for (const route of allRoutes) {
      const path = route.path
        .replace(':sandbox', 'box')
        .replace(':exec', exec?.id ?? '')
        .replace(':approval', approval)
        .replace(':name', 'profile');
      const [status, answer] = Object.entries(route.answers)[0] ?? [];
      const isQuiet =
        !/files|shutdown|signal|resize|events|metrics|openapi|explain|secrets|answer|browser/.test(path);
      if (!isQuiet || route.method === 'DELETE' || answer === undefined || !('safeParse' in answer)) continue;
      const needsBody = /(execs|ports)$/.test(path);
      if (route.method === 'POST' && needsBody) continue;
      const folder = /images\/(look|why)$/.test(path) ? { body: '{"folder":"/x"}' } : {};
      const command = /(evaluate|approvals)$/.test(path) ? { body: '{"command":"ls"}' } : {};
      const lines = route.streamBody === undefined ? {} : { headers: { 'content-type': route.streamBody } };
      const port = path.endsWith('previews') ? { body: '{"port":3000}' } : {};
      const hosts = path.endsWith('net/requests') ? { body: '{"allow":["x.org"]}' } : {};
      const given = await ask(
        route.method,
        path,
        route.method === 'GET' ? {} : { ...folder, ...command, ...port, ...hosts, ...lines },
      );
      expect(given.status, `${route.method} ${path}`).toBe(Number(status));
      expect(answer.safeParse(given.json).error, `${route.method} ${path}`).toBeUndefined();
      checked++;
    }
    expect(checked).toBeGreaterThan(12);
  });

  it('[N5] answers a stop and a removal with what was planted, without another scan', async () => {
    const { ask, sandboxes } = await littleDaemon();
    await ask('POST', '/v1/sandboxes', { body: JSON.stringify({ spec: { name: 'box' } }) });
    const [box] = sandboxes.all;
    if (box === undefined) throw new Error('no sandbox was made');
    const without = await ask('POST', '/v1/sandboxes/box/stop');
    expect(without.json).not.toHaveProperty('scan');
    expect((await ask('DELETE', '/v1/sandboxes/box?scan=true')).status).toBe(204);
    box.planted = { finished: false, planted: [] };
    const stopped = await ask('POST', '/v1/sandboxes/box/stop');
    expect(stopped.json).toMatchObject({ state: 'STOPPED', scan: box.planted });
    const removed = await ask('DELETE', '/v1/sandboxes/box?scan=true');
    expect(removed).toMatchObject({ status: 200, json: box.planted });
    expect((await ask('DELETE', '/v1/sandboxes/box')).status).toBe(204);
    expect(box.done).not.toContain('scan');
  });

  it.each([
    ['invalid JSON', '{"spec":', undefined, 400, 'request_invalid', 'body'],
    ['an unknown key', '{"spec":{"imgae":"x"}}', undefined, 400, 'request_invalid', 'body.spec.imgae'],
    [
      'a wrong value',
      '{"spec":{"limits":{"memory":"12"}}}',
      undefined,
      400,
      'request_invalid',
      'body.spec.limits.memory',
    ],
    [
      'a wrong element',
      '{"spec":{"command":["a",1]}}',
      undefined,
      400,
      'request_invalid',
      'body.spec.command[1]',
    ],
    ['another content type', '{}', 'text/plain', 415, 'request_type', undefined],
    ['a form', 'a=b', 'application/x-www-form-urlencoded', 415, 'request_type', undefined],
  ])('refuses %s, names the field and makes nothing', async (_, body, type, status, code, field) => {
    const { ask, sandboxes } = await littleDaemon();
    const answer = await ask('POST', '/v1/sandboxes', {
      body,
      ...(type === undefined ? {} : { headers: { 'content-type': type } }),
    });
    expect(answer.status).toBe(status);
    expect(errorOf(answer)).toMatchObject({ code });
    if (field !== undefined) expect(errorOf(answer)['details']).toMatchObject({ field });
    expect(sandboxes.all).toEqual([]);
  });

  it('refuses a body of more than 1 MB, whether its length is told or not, and stays usable', async () => {
    const { ask } = await littleDaemon();
    const body = Buffer.alloc(1_100_000, 'x');
    expect(await ask('POST', '/v1/sandboxes', { body })).toMatchObject({ status: 413 });
    const chunked = await ask('POST', '/v1/sandboxes', { body, headers: { 'transfer-encoding': 'chunked' } });
    expect(chunked.status).toBe(413);
    expect(errorOf(chunked)).toMatchObject({ code: 'request_too_large' });
    expect((await ask('GET', '/v1/health')).status).toBe(200);
  });

  it('says little about a spec of 100,000 unknown keys', async () => {
    const { ask } = await littleDaemon();
    const keys = Array.from({ length: 100_000 }, (_, index) => `"k${index}":1`);
    const answer = await ask('POST', '/v1/sandboxes', {
      body: `{${keys
        .join(',')
        .slice(0, 900_000)
        .replace(/,[^,]*$/, '')}}`,
    });
    expect(answer.status).toBe(400);
    expect(answer.body.length).toBeLessThan(2000);
  });

  it('refuses unknown routes, methods and fields of a query', async () => {
    const { ask } = await littleDaemon();
    expect(errorOf(await ask('GET', '/v1/nothing'))).toMatchObject({ code: 'route_unknown' });
    expect(JSON.stringify((await ask('GET', '/v1/nothing')).json)).not.toContain('/v1/sandboxes');
    expect(await ask('PATCH', '/v1/sandboxes')).toMatchObject({ status: 405 });
    expect(errorOf(await ask('GET', '/v1/sandboxes?lable=a'))).toMatchObject({
      code: 'request_invalid',
      details: { field: 'query.lable' },
    });
    expect(errorOf(await ask('GET', '/v1/sandboxes/none'))).toMatchObject({ code: 'sandbox_not_found' });
    expect(await ask('GET', '/v1/sandboxes/none')).toMatchObject({ status: 404 });
  });

  it('never shows what it did not foresee, and writes it to its log', async () => {
    const { ask, sandboxes, logged } = await littleDaemon();
    sandboxes.list = () => {
      throw new TypeError('secret at /a/path');
    };
    const answer = await ask('GET', '/v1/sandboxes');
    expect(answer.status).toBe(500);
    expect(answer.body.toString()).not.toContain('secret');
    expect(JSON.stringify(errorOf(answer))).toContain('"internal"');
    expect(logged).toHaveLength(1);
  });

  it('finds sandboxes by all labels that are asked for', async () => {
    const { ask } = await littleDaemon();
    for (const [name, labels] of [
      ['a', { team: 'x', env: 'dev' }],
      ['b', { team: 'x', env: 'prod' }],
    ] as const) {
      await ask('POST', '/v1/sandboxes', { body: JSON.stringify({ spec: { name, labels } }) });
    }
    const names = async (query: string): Promise<string[]> => {
      const { json } = await ask('GET', `/v1/sandboxes?${query}`);
      return (json as { sandboxes: { name: string }[] }).sandboxes.map(({ name }) => name);
    };
    expect(await names('label=team=x')).toEqual(['a', 'b']);
    expect(await names('label=team=x&label=env%3Dprod')).toEqual(['b']);
  });

  it('answers a create at once if asked, tells later how it went, and why it failed', async () => {
    const { ask, sandboxes } = await littleDaemon();
    const made = deferred<void>();
    sandboxes.making = made.promise;
    const accepted = await ask('POST', '/v1/sandboxes?wait=false', { body: '{"spec":{"name":"slow"}}' });
    expect(accepted.status).toBe(202);
    const { id } = accepted.json as { id: string };
    const later = ask('GET', `/v1/sandboxes/${id}/ready`);
    sandboxes.all.length = 0;
    made.reject(new SallyportError('image_missing', 'no such image'));
    expect(errorOf(await later)).toMatchObject({ code: 'image_missing' });
  });

  it('[A13] goes on with a create whose client is gone', async () => {
    const { socketPath, sandboxes, daemon } = await littleDaemon();
    const made = deferred<void>();
    sandboxes.making = made.promise;
    const outgoing = request({
      socketPath,
      method: 'POST',
      path: '/v1/sandboxes',
      headers: { 'content-type': 'application/json' },
    });
    outgoing.on('error', () => {});
    outgoing.end('{}');
    const accepted = deferred<void>();
    const { create } = sandboxes;
    sandboxes.create = async (body) => {
      const sandbox = await create.call(sandboxes, body);
      accepted.resolve();
      return sandbox;
    };
    await accepted.promise;
    const [box] = sandboxes.all;
    const released = deferred<void>();
    if (box !== undefined) box.hold = () => () => released.resolve();
    outgoing.destroy();
    await released.promise;
    made.resolve();
    expect(sandboxes.all[0]?.done).toEqual([]);
    expect(daemon).toBeDefined();
  });

  it('kills a command whose result nobody waits for any more, but not one in the background', async () => {
    const { socketPath, ask, sandboxes } = await littleDaemon();
    await ask('POST', '/v1/sandboxes', { body: '{"spec":{"name":"box"}}' });
    const leave = async (body: object): Promise<void> => {
      const outgoing = request({
        socketPath,
        method: 'POST',
        path: '/v1/sandboxes/box/execs?wait=true',
        headers: { 'content-type': 'application/json' },
      });
      outgoing.on('error', () => {});
      outgoing.end(JSON.stringify(body));
      const [answer] = await once(outgoing, 'response');
      expect(answer.headers['sallyport-exec-id']).toMatch(/^ex-/);
      answer.on('error', () => {});
      outgoing.destroy();
    };
    await leave({ argv: ['sleep'], grace_ms: 7 });
    const [first] = sandboxes.all[0]?.all ?? [];
    await first?.ended;
    expect(first?.done).toEqual(['kill 7']);
    await leave({ argv: ['sleep'], background: true });
    const second = sandboxes.all[0]?.all[1];
    // The next answer comes after the server has seen the connection end.
    while ((second?.holders ?? 0) > 0) await ask('GET', '/v1/health');
    expect(second?.done).toEqual([]);
  });

  it('refuses a client of another version or for another engine before it does anything', async () => {
    const { ask, sandboxes } = await littleDaemon();
    const create = async (client: string) =>
      await ask('POST', '/v1/sandboxes', { body: '{}', headers: { 'sallyport-client': client } });
    expect(errorOf(await create('1.3.0'))).toMatchObject({ code: 'daemon_outdated' });
    expect(errorOf(await create('1.2.2'))).toMatchObject({ code: 'client_outdated' });
    expect(errorOf(await create('1.2.3 docker-ffffffff'))).toMatchObject({ code: 'daemon_engine_differs' });
    expect(errorOf(await create('what'))).toMatchObject({ code: 'request_invalid' });
    expect(sandboxes.all).toHaveLength(0);
    expect((await create(`1.2.3 ${testEngineKey}`)).status).toBe(201);
    const health = await ask('GET', '/v1/health', { headers: { 'sallyport-client': '9.9.9' } });
    expect(health.status).toBe(200);
  });

  it('stops: answers what is under way, takes nothing new, ends streams', async () => {
    const { ask, socketPath, sandboxes, daemon } = await littleDaemon();
    const stream = request({ socketPath, path: '/v1/events?since=0' }).end();
    const [events] = await once(stream, 'response');
    events.resume();
    const ended = once(events, 'end');
    expect((await ask('POST', '/v1/shutdown', { body: '{"keep":true}' })).status).toBe(204);
    expect(sandboxes.kept).toBe(true);
    await ended;
    await daemon.stopped;
    await expect(ask('GET', '/v1/health')).rejects.toThrow();
  });

  it('stops by itself when nobody has needed it for a while, and not while a sandbox runs', async () => {
    const { ask, sandboxes, daemon } = await littleDaemon({ idleMs: 40 });
    await ask('POST', '/v1/sandboxes', { body: '{"spec":{"name":"box"}}' });
    let isStopped = false;
    void daemon.stopped.then(() => {
      isStopped = true;
    });
    const from = performance.now();
    while (performance.now() - from < 200) await ask('GET', '/v1/sandboxes/box');
    expect(isStopped).toBe(false);
    await ask('POST', '/v1/sandboxes/box/stop');
    await daemon.stopped;
    expect(sandboxes.kept).toBe(true);
  });

  it('counts what it did for Prometheus', async () => {
    const { ask, sandboxes } = await littleDaemon();
    await ask('POST', '/v1/sandboxes', { body: '{}' });
    await ask('GET', '/v1/nothing');
    const base = { sandbox_id: 'sb-aaaaaaaaaa', exec_id: 'ex-aaaaaaaaaaaa' };
    sandboxes.events.append({ ...base, type: 'exec.started', argv: ['x'], background: false });
    sandboxes.events.append({
      ...base,
      type: 'exec.ended',
      state: 'exited',
      exit_code: 3,
      timed_out: false,
      oom_killed: false,
    });
    const text = async (): Promise<string> => (await ask('GET', '/metrics')).body.toString();
    while (!(await text()).includes('outcome="failure"')) await ask('GET', '/v1/health');
    const lines = await text();
    expect(lines).toContain('sallyport_sandboxes{state="READY"} 1');
    expect(lines).toContain(
      'sallyport_http_requests_total{route="/v1/sandboxes",method="POST",status="201"} 1',
    );
    expect(lines).toContain('sallyport_http_requests_total{route="unknown",method="GET",status="404"} 1');
    expect(lines).toContain('sallyport_execs_ended_total{outcome="failure"} 1');
    expect(lines).toContain('sallyport_exec_duration_seconds_count 1');
    expect(lines).toContain('sallyport_events_total 2');
    expect(lines).toMatch(/process_resident_memory_bytes \d+/);
  });
});
