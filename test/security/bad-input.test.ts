/**
 * What a client may send to the daemon, right or wrong: every refusal names field, value, reason and way out, and nothing
 * was made. Compared before and after: objects in the engine, folders of sandboxes, and the number of the last event.
 */

import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseConfigText } from '../../src/config/yaml-file.ts';
import { specSchema } from '../../src/protocol/spec.ts';
import type { HealthView, SandboxView } from '../../src/protocol/views.ts';
import { followEvents } from '../../src/sdk/events.ts';
import { Sandbox } from '../../src/sdk/sandbox.ts';
import { type DaemonHome, daemonHome, type TestDaemon } from '../support/daemon-home.ts';
import { belongings, makeSandbox, type RawAnswer, rawRequest, timed } from '../support/daemon-world.ts';
import { testEngine } from '../support/engine.ts';

const create = async (home: DaemonHome, body: unknown): Promise<RawAnswer> =>
  await rawRequest(home, 'POST', '/v1/sandboxes', { body: JSON.stringify(body) });

async function everything(home: DaemonHome, daemon: TestDaemon) {
  const { sequence } = await daemon.client.json<HealthView>('GET', '/v1/health');
  return { ...(await belongings(home)), sequence };
}

interface Refusal {
  readonly spec: object;
  /** As the answer names it. */
  readonly field: string;
  /** Of the message: the value where it may be shown, and the reason with the way out. */
  readonly says: RegExp;
}

const smuggled: Readonly<Record<string, Refusal>> = {
  'network: host': { spec: { network: 'host' }, field: 'network', says: /\("host"\) must be none.*egress/ },
  'network: bridge': { spec: { network: 'bridge' }, field: 'network', says: /\("bridge"\) must be none/ },
  'network of another container': {
    spec: { network: 'container:x' },
    field: 'network',
    says: /must be none/,
  },
  privileged: { spec: { privileged: true }, field: 'privileged', says: /is no known field; known are image/ },
  'pid: host': { spec: { pid: 'host' }, field: 'pid', says: /is no known field/ },
  'ipc: host': { spec: { ipc: 'host' }, field: 'ipc', says: /is no known field/ },
  devices: { spec: { devices: ['/dev/kmsg'] }, field: 'devices', says: /is no known field/ },
  cap_add: { spec: { cap_add: ['SYS_ADMIN'] }, field: 'cap_add', says: /is no known field/ },
  security_opt: { spec: { security_opt: ['seccomp=unconfined'] }, field: 'security_opt', says: /no known/ },
  "the engine's own words": {
    spec: { HostConfig: { Privileged: true } },
    field: 'HostConfig',
    says: /no known/,
  },
  'a field inside limits': {
    spec: { limits: { swap: '1g' } },
    field: 'limits.swap',
    says: /no known.*memory/,
  },
  'a slip of the pen': { spec: { imgae: 'x' }, field: 'imgae', says: /did you mean image\?/ },
  'a label of ours': {
    spec: { labels: { 'dev.sallyport.owner': 'other' } },
    field: 'labels.dev.sallyport.owner',
    says: /reserved.*dev\.sallyport\./,
  },
  'a label of ours in capitals': {
    spec: { labels: { 'DEV.Sallyport.id': 'x' } },
    field: 'labels.DEV.Sallyport.id',
    says: /reserved/,
  },
  'a variable of ours': {
    spec: { envs: { SALLYPORT_TOKEN: 'secret-value' } },
    field: 'envs.SALLYPORT_TOKEN',
    says: /reserved.*SALLYPORT_/,
  },
  'a variable with an equals sign': { spec: { envs: { 'A=B': 'x' } }, field: 'envs.A=B', says: /no name/ },
  'a variable with a NUL': { spec: { envs: { A: 'x\0y' } }, field: 'envs.A', says: /contains a NUL/ },
  'user 0:0': { spec: { user: '0:0' }, field: 'user', says: /0:0.*never runs as root/ },
  'user by name': { spec: { user: 'root' }, field: 'user', says: /"root".*uid:gid/ },
  'memory 12': {
    spec: { limits: { memory: '12' } },
    field: 'limits.memory',
    says: /"12".*did you mean 12m\?/,
  },
  'memory in words': {
    spec: { limits: { memory: 'lots' } },
    field: 'limits.memory',
    says: /"lots".*512m or 4g/,
  },
  'no processor': {
    spec: { limits: { cpus: 0 } },
    field: 'limits.cpus',
    says: /\(0\) must be at least 0\.01/,
  },
  'an image that is an option': {
    spec: { image: '--privileged' },
    field: 'image',
    says: /no image reference/,
  },
  'a name with a path': { spec: { name: '../../x' }, field: 'name', says: /"\.\.\/\.\.\/x".*use a-z/ },
  'a target above': {
    spec: { mounts: [{ source: '/tmp', target: '/x/../../etc' }] },
    field: 'mounts[0].target',
    says: /must not contain \.\./,
  },
  'a mount of /etc': {
    spec: { mounts: [{ source: '/etc', target: '/x' }] },
    field: 'mounts.0.source',
    says: /\/etc/,
  },
  'a mount over porter': {
    spec: { mounts: [{ source: '/usr/share', target: '/.sallyport' }] },
    field: 'mounts.0.target',
    says: /\/\.sallyport/,
  },
  'a workspace of /': { spec: { workspace: { path: '/' } }, field: 'workspace.path', says: /\// },
  'a runtime that is none': { spec: { runtime: 'no-such' }, field: 'runtime', says: /"no-such"/ },
};

describe('[O5] a spec that smuggles or is wrong', () => {
  test('each is refused by field, value, reason and way out, and nothing is made; one that is right is made', async () => {
    const home = await daemonHome();
    const daemon = await home.start();
    const before = await everything(home, daemon);
    for (const [name, { spec, field, says }] of Object.entries(smuggled)) {
      const { status, error } = await create(home, { spec: { image: testEngine().image, ...spec } });
      expect(status, `${name}: ${error?.message}`).toBeGreaterThanOrEqual(400);
      expect(status, `${name}: ${error.message}`).toBeLessThan(502);
      const named = error.details['field'] ?? (error.details['runtime'] === undefined ? '' : 'runtime');
      expect(String(named).replace(/^body\.spec\./, ''), name).toBe(field);
      expect(error.message, name).toMatch(says);
      expect(error.advice.length, name).toBeGreaterThan(10);
      expect(JSON.stringify(error), name).not.toContain('secret-value');
    }
    expect(await everything(home, daemon)).toEqual(before);
    const labels = { 'com.example.owner': 'me' };
    const envs = { TOKEN: 'x', LD_PRELOAD: '/nowhere' };
    const right = { image: testEngine().image, network: 'none', labels, envs, limits: { memory: '64m' } };
    expect(await create(home, { spec: right })).toMatchObject({ status: 201 });
  });

  test('smuggled beside the spec, in execs and in queries: refused as well', async () => {
    const home = await daemonHome();
    const daemon = await home.start();
    await using box = await makeSandbox(daemon, { name: 'box' });
    const before = await everything(home, daemon);
    const execs = '/v1/sandboxes/box/execs';
    const attempts: readonly [string, string, unknown, string][] = [
      ['POST', '/v1/sandboxes', { privileged: true }, 'body.privileged'],
      ['POST', execs, { argv: ['id'], user: '0:0' }, 'body.user'],
      ['POST', execs, { argv: ['id'], privileged: true }, 'body.privileged'],
      ['POST', execs, { argv: [] }, 'body.argv'],
      ['POST', execs, { argv: ['a\0b'] }, 'body.argv[0]'],
      ['POST', execs, { argv: ['id'], envs: { SALLYPORT_X: '' } }, 'body.envs.SALLYPORT_X'],
      ['POST', execs, { argv: ['id'], timeout_ms: -1 }, 'body.timeout_ms'],
      ['POST', '/v1/sandboxes?wait=maybe', {}, 'query.wait'],
      ['POST', '/v1/sandboxes?force=true', {}, 'query.force'],
    ];
    for (const [method, path, body, field] of attempts) {
      const { status, error } = await rawRequest(home, method, path, { body: JSON.stringify(body) });
      expect({ path, status, field: error.details['field'] }).toEqual({ path, status: 400, field });
    }
    expect(await everything(home, daemon)).toEqual(before);
    expect((await box.exec(['id', '-u'])).stdout).not.toBe('0\n');
  });
});

describe('a body that is too much or nothing', () => {
  test('1 MB of variables, 100,000 keys, deep nesting, more than 1 MB, no JSON, another type: all answered at once', async () => {
    const home = await daemonHome();
    const daemon = await home.start();
    const before = await everything(home, daemon);
    const keys = Object.fromEntries(Array.from({ length: 100_000 }, (_, key) => [`k${key}`, 1]));
    const small = Object.fromEntries(Array.from({ length: 90_000 }, (_, key) => [`k${key}`, 1]));
    const variables = (count: number, bytes: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, key) => [`V${key}`, 'x'.repeat(bytes)]));
    const json = { 'content-type': 'application/json' };
    const attempts: readonly [string, string | Buffer, Record<string, string>, number, RegExp][] = [
      ['100,000 keys', JSON.stringify({ spec: keys }), json, 413, /larger than 1000000 bytes/],
      ['90,000 keys', JSON.stringify({ spec: small }), json, 400, /body\.spec has more than 1000 entries/],
      ['90,000 keys at the top', JSON.stringify(small), json, 400, /body has more than 1000 entries/],
      ['1 MB of variables', JSON.stringify({ spec: { envs: variables(1, 2 ** 20) } }), json, 413, /larger/],
      [
        '900 KB of variables',
        JSON.stringify({ spec: { envs: variables(9, 100_000) } }),
        json,
        400,
        /envs.*512 KiB.*into a file/,
      ],
      [
        '2000 variables',
        JSON.stringify({ spec: { envs: variables(2000, 1) } }),
        json,
        400,
        /envs has more than 1000/,
      ],
      [
        'deep',
        `{"spec":${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}}`,
        json,
        400,
        /nested deeper than 32/,
      ],
      [
        'deep lists',
        `{"spec":{"command":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`,
        json,
        400,
        /nested deeper/,
      ],
      ['__proto__', '{"spec":{"__proto__":{"network":"host"}}}', json, 400, /__proto__ is no name/],
      ['half', '{"spec":{', json, 400, /no valid JSON/],
      ['a number', '7', json, 400, /must be a map/],
      ['null', 'null', json, 400, /must be a map/],
      ['a list', '[]', json, 400, /must be a map/],
      ['no UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), json, 400, /./],
      [
        'a form',
        'spec=x',
        { 'content-type': 'application/x-www-form-urlencoded' },
        415,
        /takes application\/json/,
      ],
      ['text', '{}', { 'content-type': 'text/plain' }, 415, /takes application\/json/],
      ['no type', '{}', {}, 415, /of no type/],
    ];
    for (const [name, body, headers, status, says] of attempts) {
      const { value, ms } = await timed(rawRequest(home, 'POST', '/v1/sandboxes', { body, headers }));
      expect({ name, status: value.status, message: value.error.message }).toEqual({
        name,
        status,
        message: expect.stringMatching(says),
      });
      expect(value.error.advice.length, name).toBeGreaterThan(10);
      expect(ms, name).toBeLessThan(10_000);
    }
    expect(await everything(home, daemon)).toEqual(before);
    const envs = variables(5, 100_000);
    const spec = { image: testEngine().image, envs };
    await using box = await Sandbox.create(spec, { client: daemon.client });
    expect((await box.sh('printf %s "$V4" | wc -c')).stdout.trim()).toBe('100000');
  });

  test('a YAML alias bomb is refused at once; ordinary aliases are not', () => {
    const lines = Array.from(
      { length: 30 },
      (_, at) => `  a${at + 1}: &a${at + 1} [*a${at}, *a${at}, *a${at}]`,
    );
    const bomb = `labels:\n  a0: &a0 [x, x]\n${lines.join('\n')}\n`;
    const began = performance.now();
    expect(() => parseConfigText('sallyport.yaml', bomb, specSchema)).toThrow(
      expect.objectContaining({ code: 'config_invalid', message: expect.stringMatching(/alias/) }),
    );
    expect(performance.now() - began).toBeLessThan(30_000);
    const ordinary = 'labels:\n  a: &name one\n  b: *name\n';
    expect(parseConfigText('sallyport.yaml', ordinary, specSchema)).toEqual({
      labels: { a: 'one', b: 'one' },
    });
  });
});

describe('the wrong thing at the wrong time', () => {
  test('[C6] an image that does not exist: it says so, leaves no container, and its name is free after a removal', async () => {
    const home = await daemonHome();
    const daemon = await home.start();
    // A registry that is not there: nothing is asked of any network.
    const image = '127.0.0.1:9/no/such:image';
    const { status, error } = await create(home, { spec: { name: 'box', image } });
    expect(status).toBeGreaterThanOrEqual(400);
    expect(error.message).toContain(image);
    expect((await belongings(home)).containers).toEqual([]);
    expect(await create(home, { spec: { name: 'box', image: testEngine().image } })).toMatchObject({
      status: 409,
    });
    expect(await rawRequest(home, 'DELETE', '/v1/sandboxes/box')).toMatchObject({ status: 204 });
    await using again = await makeSandbox(daemon, { name: 'box' });
    expect((await again.exec(['true'])).exitCode).toBe(0);
  });

  test('[A12] a name that is taken, and two creates of one name at once: one gets it, the other is told', async () => {
    const home = await daemonHome();
    await home.start();
    const body = { spec: { name: 'box', image: testEngine().image } };
    const answers = await Promise.all([create(home, body), create(home, body), create(home, body)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409]);
    const late = await create(home, body);
    for (const { error } of [late, ...answers.filter(({ status }) => status === 409)]) {
      expect(error).toMatchObject({
        code: 'sandbox_exists',
        message: expect.stringContaining('box'),
        advice: expect.stringMatching(/another name.*sally rm box/),
        details: { sandbox: 'box' },
      });
    }
    const { containers, folders } = await belongings(home);
    expect({ containers: containers.length, folders: folders.length }).toEqual({ containers: 1, folders: 1 });
  });

  test('[A12] delete during create, at whatever moment it comes: nothing is left', async () => {
    const home = await daemonHome();
    const daemon = await home.start();
    const before = await belongings(home);
    for (const moment of ['at once', 'container', 'ready'] as const) {
      const { sequence } = await daemon.client.json<HealthView>('GET', '/v1/health');
      const { json } = await rawRequest(home, 'POST', '/v1/sandboxes?wait=false', {
        body: JSON.stringify({ spec: { name: 'box', image: testEngine().image } }),
      });
      const { id } = json as SandboxView;
      if (moment === 'container') await containerOf(home);
      if (moment === 'ready') await stateReached(daemon, id, sequence, 'READY');
      expect(await rawRequest(home, 'DELETE', `/v1/sandboxes/${id}`)).toMatchObject({ status: 204 });
      expect(await belongings(home)).toEqual(before);
      expect(await rawRequest(home, 'GET', `/v1/sandboxes/${id}`)).toMatchObject({ status: 404 });
    }
  });

  test('exec on a stopped, a paused and a removed sandbox: refused with the way out, and not started by it', async () => {
    const home = await daemonHome();
    const daemon = await home.start();
    const box = await makeSandbox(daemon, { name: 'box' });
    const body = JSON.stringify({ argv: ['true'] });
    const exec = () => rawRequest(home, 'POST', '/v1/sandboxes/box/execs?wait=true', { body });
    await box.pause();
    expect(await exec()).toMatchObject({
      status: 409,
      error: { code: 'sandbox_state', advice: expect.stringContaining('sally resume box') },
    });
    await box.resume();
    expect(await exec()).toMatchObject({ status: 200 });
    await box.stop();
    const { status, error } = await exec();
    expect({ status, code: error.code, details: error.details }).toEqual({
      status: 409,
      code: 'sandbox_state',
      details: { sandbox: 'box', state: 'STOPPED' },
    });
    expect(error.advice).toContain('sally start box');
    expect((await box.refresh()).state).toBe('STOPPED');
    await box.start();
    expect(await exec()).toMatchObject({ status: 200 });
    await box.remove();
    expect(await exec()).toMatchObject({ status: 404, error: { code: 'sandbox_not_found' } });
  });

  test('[A13] a client that vanishes in the middle of a create cancels nothing and leaks nothing', async () => {
    const home = await daemonHome();
    const daemon = await home.start();
    const { sequence } = await daemon.client.json<HealthView>('GET', '/v1/health');
    const events = followEvents(daemon.client, { since: sequence });
    const body = JSON.stringify({ spec: { name: 'orphan', image: testEngine().image } });
    const socket = connect(join(home.stateDir, 'daemon.sock'));
    await once(socket, 'connect');
    socket.write(
      `POST /v1/sandboxes HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    const accepted = await events.next();
    expect(accepted.value).toMatchObject({ type: 'sandbox.state', to: 'PENDING', name: 'orphan' });
    socket.destroy();
    for await (const event of events) {
      if (event.type === 'sandbox.state') {
        expect(event.to).toBe('READY');
        break;
      }
    }
    const box = await Sandbox.connect('orphan', { client: daemon.client });
    expect((await box.exec(['echo', 'here'])).stdout).toBe('here\n');
    await box.remove();
    const { containers, folders } = await belongings(home);
    expect({ containers, folders }).toEqual({ containers: [], folders: [] });
    // One that vanishes before its request is whole has asked for nothing.
    const { sequence: last } = await daemon.client.json<HealthView>('GET', '/v1/health');
    const half = connect(join(home.stateDir, 'daemon.sock'));
    await once(half, 'connect');
    half.write(
      `POST /v1/sandboxes HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body.slice(0, 20)}`,
    );
    half.destroy();
    expect(await daemon.client.json('GET', '/v1/health')).toMatchObject({ sequence: last });
  });
});

/** Waits by asking the engine, which answers when its container is there. */
async function containerOf({ engine, owner }: DaemonHome): Promise<void> {
  while ((await engine.list(owner)).length === 0) await Promise.resolve();
}

async function stateReached(daemon: TestDaemon, id: string, since: number, state: string): Promise<void> {
  for await (const event of followEvents(daemon.client, { since, sandbox: id })) {
    if (event.type === 'sandbox.state' && event.to === state) return;
  }
}
