import { describe, expect, it } from 'vitest';
import { connectionError, isDiskFull, statusError } from './errors.ts';
import { SshError } from './ssh.ts';

const failure = (code: string): Error => Object.assign(new Error(`failed: ${code}`), { code });

describe('connectionError', () => {
  it.each([
    ['ENOENT', 'engine_unreachable', 'there is no socket'],
    ['ECONNREFUSED', 'engine_unreachable', 'connection refused'],
    ['ECONNRESET', 'engine_unreachable', 'the connection was lost'],
    ['ENOTFOUND', 'engine_unreachable', 'ENOTFOUND'],
    ['EACCES', 'engine_permission_denied', 'permission denied'],
    ['EPERM', 'engine_permission_denied', 'permission denied'],
    ['HPE_INVALID_CONSTANT', 'engine_protocol', 'does not speak HTTP'],
    ['EPROTO', 'engine_protocol', 'does not speak TLS'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'engine_protocol', 'does not speak TLS'],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'engine_unreachable', 'is not trusted'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'engine_unreachable', 'is not trusted'],
    ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'engine_permission_denied', 'client certificate'],
  ])('makes of %s the error %s', (cause, code, words) => {
    expect(connectionError('unix:///x', failure(cause))).toMatchObject({
      code,
      message: expect.stringContaining(words),
      details: { endpoint: 'unix:///x' },
      advice: expect.stringMatching(/\w/),
    });
  });

  it("passes ssh's own words on, with the way to try it by hand", () => {
    expect(connectionError('ssh://me@h', new SshError('Host key verification failed.'))).toMatchObject({
      code: 'engine_unreachable',
      message: expect.stringContaining('Host key verification failed.'),
      advice: expect.stringContaining('ssh ssh://me@h docker version'),
    });
  });
});

describe('statusError', () => {
  it.each([
    [404, 'No such container: x', undefined, 'engine_not_found'],
    [404, 'No such image: x', 'image_missing', 'image_missing'],
    [409, 'name is in use', undefined, 'engine_conflict'],
    [500, 'write /x: no space left on device', undefined, 'disk_full'],
    [500, 'boom', undefined, 'engine_failed'],
    [400, 'bad parameter', undefined, 'engine_failed'],
  ] as const)('makes of %d "%s" (404 means %s) the error %s', (status, message, notFound, code) => {
    expect(statusError('GET /x', status, message, notFound)).toMatchObject({
      code,
      message: `GET /x: ${message}`,
      details: { status },
    });
  });

  it('knows a full disk and a used-up quota by the words of the kernel', () => {
    expect(isDiskFull('Error: No space left on device')).toBe(true);
    expect(isDiskFull('disk quota exceeded')).toBe(true);
    expect(isDiskFull('the disk is full of things')).toBe(false);
  });
});
