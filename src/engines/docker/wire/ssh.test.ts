import { describe, expect, it } from 'vitest';
import { sshArguments } from './ssh.ts';

describe('sshArguments', () => {
  it('puts the host behind the end of the options, and asks nobody anything', () => {
    expect(sshArguments({ kind: 'ssh', host: 'h', user: '-x', port: 22 })).toEqual([
      '-o',
      'BatchMode=yes',
      '-o',
      'ConnectTimeout=10',
      '-T',
      '-l',
      '-x',
      '-p',
      '22',
      '--',
      'h',
      'docker',
      'system',
      'dial-stdio',
    ]);
  });
});
