import { describe, expect, it } from 'vitest';
import { describesDebian } from './debian-packages.ts';

describe('a machine whose packages are Debian’s', () => {
  it.each([
    ['ID=debian', true],
    ['NAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian', true],
    ['ID=linuxmint\nID_LIKE="ubuntu debian"', true],
    ['ID=fedora', false],
    ['ID="rhel"\nID_LIKE="fedora"', false],
    ['NAME=debian', false],
    ['', false],
  ])('is told by os-release %j: %s', (osRelease, answer) => {
    expect(describesDebian(osRelease)).toBe(answer);
  });
});
