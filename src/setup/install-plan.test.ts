import { describe, expect, it } from 'vitest';
import { bareDebian as debianRoot } from './host-facts.fixture.ts';
import { type HostFacts, parseOsRelease } from './host-facts.ts';
import { installPlan } from './install-plan.ts';

describe('installPlan', () => {
  it.each([[['debian']], [['ubuntu', 'debian']], [['linuxmint', 'ubuntu', 'debian']]])(
    'installs with apt-get as root on %j',
    (distribution) => {
      expect(installPlan({ ...debianRoot, distribution })).toEqual({
        packages: ['docker.io', 'iptables', 'iproute2'],
        commands: [
          'apt-get update',
          'apt-get install -y --no-install-recommends docker.io iptables iproute2',
        ],
      });
    },
  );

  it.each<[string, Partial<HostFacts>, RegExp]>([
    ['Debian without root', { isRoot: false }, /sudo apt-get install -y .*docker\.io iptables/],
    ['Fedora', { distribution: ['fedora'] }, /dnf install/],
    ['Rocky', { distribution: ['rocky', 'rhel', 'centos', 'fedora'] }, /dnf install/],
    ['Arch', { distribution: ['arch'] }, /pacman -S docker/],
    ['openSUSE', { distribution: ['opensuse-leap', 'suse', 'opensuse'] }, /zypper install docker/],
    ['Alpine', { distribution: ['alpine'] }, /apk add docker/],
    ['an unknown Linux', { distribution: [] }, /Docker Engine 20\.10 or newer/],
    ['macOS', { platform: 'darwin', distribution: [] }, /Docker Desktop, OrbStack or colima/],
    ['Windows', { platform: 'win32', distribution: [] }, /WSL 2/],
    ['FreeBSD', { platform: 'freebsd', distribution: [] }, /DOCKER_HOST/],
  ])('says what to do on %s', (_name, facts, advice) => {
    expect(() => installPlan({ ...debianRoot, ...facts })).toThrow(
      expect.objectContaining({ code: 'setup_impossible', advice: expect.stringMatching(advice) }),
    );
  });
});

describe('parseOsRelease', () => {
  it.each([
    ['ID=debian\nVERSION_ID="12"\n', ['debian']],
    ['PRETTY_NAME="x"\nID=linuxmint\nID_LIKE="ubuntu debian"\n', ['linuxmint', 'ubuntu', 'debian']],
    ["ID='rocky'\nID_LIKE='rhel centos fedora'", ['rocky', 'rhel', 'centos', 'fedora']],
    ['', []],
  ])('reads %j', (text, expected) => {
    expect(parseOsRelease(text)).toEqual(expected);
  });
});
