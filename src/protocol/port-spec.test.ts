import { describe, expect, it } from 'vitest';
import { parsePort, writePort } from './port-spec.ts';

describe('a port', () => {
  it.each([
    ['3000', { box: 3000 }],
    ['8080:3000', { host: 8080, box: 3000 }],
    ['127.0.0.1:8080:3000', { address: '127.0.0.1', host: 8080, box: 3000 }],
    ['[::1]:8080:3000', { address: '::1', host: 8080, box: 3000 }],
    ['0.0.0.0:1:65535', { address: '0.0.0.0', host: 1, box: 65535 }],
  ])('%s is understood, and written the same', (text, port) => {
    expect(parsePort(text)).toEqual(port);
    expect(writePort(port)).toBe(text);
  });

  it.each([
    '',
    '0',
    '65536',
    '80:0',
    '80:',
    ':80',
    'a:80',
    '::1:80:80',
    '1.2.3:80:80',
    '[1.2.3.4]:80:80',
    '-1',
    '80/tcp',
    '1:2:3:4',
  ])('%j is none', (text) => {
    expect(parsePort(text)).toBeUndefined();
  });
});
