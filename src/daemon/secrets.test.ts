import { describe, expect, it } from 'vitest';
import { littleDaemon } from '../../test/support/little-daemon.ts';

const value = 'the-real-value-0123';
const binding = { hosts: ['api.test'], headers: ['authorization'] };

describe('secrets over HTTP', () => {
  it('[R7] are set, listed, checked and removed, and their values never come back', async () => {
    const { ask, logged } = await littleDaemon();
    const put = (name: string, body: object) =>
      ask('PUT', `/v1/secrets/${name}`, { body: JSON.stringify(body) });
    const answers = [
      await put('anthropic', { service: 'anthropic', value }),
      await put('ci', { binding: { ...binding, env: ['TOKEN'], path: '/v1' }, value, budget: 3 }),
      await ask('GET', '/v1/secrets'),
      await ask('GET', '/v1/secrets/ci/check'),
      await ask('GET', '/v1/secrets/absent/check'),
      await ask('DELETE', '/v1/secrets/ci'),
      await ask('DELETE', '/v1/secrets/ci'),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 204, 404]);
    expect(answers[0]?.json).toMatchObject({ hosts: ['api.anthropic.com'], env: ['ANTHROPIC_API_KEY'] });
    expect(answers[1]?.json).toMatchObject({ hosts: ['api.test'], port: 443, path: '/v1', budget: 3 });
    expect(answers[4]?.json).toMatchObject({ state: 'missing' });
    expect(JSON.stringify([answers, logged])).not.toContain(value);
  });

  it('[R7] that are wrong are refused, and no word of the refusal shows the value', async () => {
    const { ask, logged } = await littleDaemon();
    const spoilt = `${value} with spaces`;
    const rows: readonly (readonly [string, string])[] = [
      ['no host', JSON.stringify({ value })],
      ['an empty list of hosts', JSON.stringify({ binding: { ...binding, hosts: [] }, value })],
      ['a pattern', JSON.stringify({ binding: { ...binding, hosts: ['*.test.com'] }, value })],
      ['a URL', JSON.stringify({ binding: { ...binding, hosts: ['https://api.test'] }, value })],
      ['the header Host', JSON.stringify({ binding: { ...binding, headers: ['host'] }, value })],
      ['a climbing path', JSON.stringify({ binding: { ...binding, path: '/a/../b' }, value })],
      ['a reserved variable', JSON.stringify({ binding: { ...binding, env: ['SALLYPORT_X'] }, value })],
      ['a value of two words', JSON.stringify({ binding, value: spoilt })],
      ['a value with a line end', JSON.stringify({ binding, value: `${value}\r\nX: y` })],
      ['a short value', JSON.stringify({ binding, value: 'abc' })],
      ['both sources', JSON.stringify({ binding, value, command: ['true'] })],
      ['both bindings', JSON.stringify({ service: 'github', binding, value })],
      ['an unknown service', JSON.stringify({ service: 'nobody', value })],
      ['a value that is no text', JSON.stringify({ binding, value: { inner: value } })],
      ['broken JSON', `{"value":"${value}"`],
      ['no JSON', value],
    ];
    for (const [what, body] of rows) {
      const answer = await ask('PUT', '/v1/secrets/ci', { body });
      expect([what, answer.status]).toEqual([what, 400]);
      expect([what, JSON.stringify(answer)]).toEqual([what, expect.not.stringContaining('the-real')]);
    }
    expect(
      (await ask('PUT', '/v1/secrets/Not%20a%20name', { body: JSON.stringify({ binding, value }) })).status,
    ).toBe(400);
    expect((await ask('GET', '/v1/secrets')).json).toEqual({ secrets: [] });
    expect(JSON.stringify(logged)).not.toContain('the-real');
  });
});
