import { describe, expect, it } from 'vitest';
import { admit, newToken } from './devtools-access.ts';

const place = { port: 4000, token: newToken() };
const at = (url: string, headers: Record<string, string> = {}) =>
  admit({ url, headers: { host: '127.0.0.1:4000', ...headers } }, place);

describe('admission to DevTools', () => {
  it('[G12] takes the token off the path', () => {
    expect(at(`/${place.token}/json/version/?x=1`)).toEqual({ path: '/json/version/?x=1' });
    expect(at(`/${place.token}`)).toEqual({ path: '/' });
    expect(at(`/${place.token}?x`)).toEqual({ path: '/?x' });
    expect(place.token).not.toBe(newToken());
    expect(place.token).toMatch(/^[\w-]{43}$/);
  });

  it.each([
    '/',
    '/json/version',
    '/json/version/',
    '/devtools/browser/e107184c',
    '//json/version',
    `/${place.token}x/json/version`,
    `/${place.token.slice(1)}/json/version`,
    `/%${place.token}/json/version`,
    `/json/version?${place.token}`,
    `/json/version#/${place.token}/`,
    `http://127.0.0.1:4000/${place.token}/json/version`,
    '*',
    '',
  ])('[G12] refuses %s', (url) => {
    expect(at(url)).toMatchObject({ status: 401 });
  });

  it.each([
    'evil.test:4000',
    'evil.test',
    '127.0.0.1',
    '127.0.0.1:4001',
    '127.0.0.1.evil.test:4000',
    'localhost.evil.test:4000',
    '',
  ])('[G12] refuses the name %s, whoever has the token', (host) => {
    expect(at(`/${place.token}/json/version`, { host })).toMatchObject({ status: 421 });
    for (const own of ['127.0.0.1:4000', 'localhost:4000', '[::1]:4000']) {
      expect(at(`/${place.token}/json/version`, { host: own })).toEqual({ path: '/json/version' });
    }
  });

  it.each([
    { origin: 'http://evil.test' },
    { origin: 'http://127.0.0.1:4000' },
    { origin: 'null' },
    { origin: 'devtools://devtools' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-origin' },
  ])('[G12] refuses a web page: %j', (headers: Record<string, string>) => {
    expect(at(`/${place.token}/json/version`, headers)).toMatchObject({ status: 403 });
    // Typed by a person.
    expect(at(`/${place.token}/json/version`, { 'sec-fetch-site': 'none' })).toEqual({
      path: '/json/version',
    });
  });
});
