import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isSallyportError } from '../../../protocol/errors.ts';
import { describeEndpoint, type Endpoint, parseEndpoint } from './endpoint.ts';

const tls = { skipVerify: false };

describe('parseEndpoint', () => {
  it.each<[string, Endpoint]>([
    ['unix:///var/run/docker.sock', { kind: 'unix', path: '/var/run/docker.sock' }],
    ['unix:///with space/and%20percent', { kind: 'unix', path: '/with space/and%20percent' }],
    ['tcp://10.0.0.1', { kind: 'tcp', host: '10.0.0.1', port: 2375 }],
    ['tcp://build.example:1234', { kind: 'tcp', host: 'build.example', port: 1234 }],
    ['TCP://build.example:1234/', { kind: 'tcp', host: 'build.example', port: 1234 }],
    ['tcp://[::1]:2375', { kind: 'tcp', host: '::1', port: 2375 }],
    ['http://h', { kind: 'tcp', host: 'h', port: 2375 }],
    ['http://h:80', { kind: 'tcp', host: 'h', port: 80 }],
    ['https://h', { kind: 'tcp', host: 'h', port: 2376, tls }],
    ['https://h:443', { kind: 'tcp', host: 'h', port: 443, tls }],
    ['ssh://h', { kind: 'ssh', host: 'h' }],
    ['ssh://me@h:2222', { kind: 'ssh', host: 'h', user: 'me', port: 2222 }],
    ['ssh://me%40corp@h', { kind: 'ssh', host: 'h', user: 'me@corp' }],
    ['ssh://[fe80::1]:22', { kind: 'ssh', host: 'fe80::1', port: 22 }],
  ])('[G3] reads %s', (address, endpoint) => {
    expect(parseEndpoint(address)).toEqual(endpoint);
  });

  it('[G3] takes port 2376 and the given certificates when TLS is asked for', () => {
    const files = { caPath: '/c/ca.pem', skipVerify: false };
    expect(parseEndpoint('tcp://h', files)).toEqual({ kind: 'tcp', host: 'h', port: 2376, tls: files });
  });

  it.each([
    '',
    'docker',
    '/var/run/docker.sock',
    'localhost:2375',
    'unix://',
    'unix://relative/path',
    'unix:///nul\0l',
    'tcp://',
    'tcp://:2375',
    'tcp://h:99999',
    'tcp://h:port',
    'tcp://h/path',
    'tcp://user@h:2375',
    'ssh://',
    'ssh://-oProxyCommand=touch%20x',
    'ssh://-oProxyCommand=x@h',
    'ssh://%2DoProxyCommand=x@h',
    'ssh://%zz@h',
    'ssh://me:secret@h',
    'ssh://h/run/docker.sock',
    'npipe:////./pipe/docker_engine',
    'fd://3',
    'ftp://h',
  ])('[G3] refuses %j with a typed error that names it', (address) => {
    const failure = (): unknown => {
      try {
        return parseEndpoint(address);
      } catch (error) {
        return error;
      }
    };
    expect(failure()).toMatchObject({ code: 'engine_endpoint_invalid', details: { address } });
  });

  it('never fails in any other way, whatever the address is', () => {
    const schemes = fc.constantFrom('', 'unix://', 'tcp://', 'ssh://', 'http://', 'https://', 'x://');
    fc.assert(
      fc.property(schemes, fc.string({ unit: 'binary' }), (scheme, rest) => {
        try {
          const endpoint = parseEndpoint(scheme + rest);
          return endpoint.kind !== 'ssh' || !endpoint.host.startsWith('-');
        } catch (error) {
          return isSallyportError(error, 'engine_endpoint_invalid');
        }
      }),
    );
  });
});

describe('describeEndpoint', () => {
  it.each(['unix:///run/x.sock', 'tcp://h:2375', 'tcp://[::1]:2375', 'ssh://me@h:22', 'ssh://h'])(
    'writes %s as it was read',
    (address) => {
      expect(describeEndpoint(parseEndpoint(address))).toBe(address);
    },
  );
});
