import { describe, expect, it } from 'vitest';
import { bareDebian as bare } from './host-facts.fixture.ts';
import type { HostFacts } from './host-facts.ts';
import { type StartWay, startWays } from './start-ways.ts';

function describeWay(way: StartWay): string {
  switch (way.kind) {
    case 'command':
      return way.command.join(' ');
    case 'private':
      return `private ${way.dockerd}`;
    case 'advice':
      return `say ${way.commandLine}`;
  }
}

describe('startWays', () => {
  it.each<[string, Partial<HostFacts>, readonly string[]]>([
    ['nothing on a bare machine', {}, []],
    ['Docker Desktop on a Mac', { platform: 'darwin', apps: ['Docker'] }, ['open -a Docker']],
    ['OrbStack by its app', { platform: 'darwin', apps: ['OrbStack'] }, ['open -a OrbStack']],
    [
      'OrbStack by its command where there is one',
      { platform: 'darwin', apps: ['OrbStack'], programs: { orb: '/opt/orb' } },
      ['/opt/orb start'],
    ],
    [
      'all that a Mac has, Docker Desktop first',
      { platform: 'darwin', apps: ['Docker'], programs: { colima: 'colima', podman: 'podman' } },
      ['open -a Docker', 'colima start', 'podman machine start'],
    ],
    [
      'systemd as root',
      { systemd: true, units: ['docker.service'], programs: { systemctl: 'systemctl', dockerd: 'dockerd' } },
      ['systemctl start docker'],
    ],
    [
      'systemd as a user: the command to type',
      { isRoot: false, systemd: true, units: ['docker.service'], programs: { systemctl: 'systemctl' } },
      ['say sudo systemctl start docker'],
    ],
    [
      'a private dockerd where systemd is installed and not running',
      { units: ['docker.service'], programs: { systemctl: 'systemctl', dockerd: '/usr/sbin/dockerd' } },
      ['private /usr/sbin/dockerd'],
    ],
    [
      'a dockerd that a user may not start',
      { isRoot: false, programs: { dockerd: 'dockerd' } },
      ['say sudo sally setup'],
    ],
    [
      "a user's own engines before advice",
      {
        isRoot: false,
        systemd: true,
        units: ['docker.service'],
        userUnits: ['docker-desktop.service', 'docker.service'],
        programs: { systemctl: 'systemctl', colima: 'colima' },
      },
      [
        'systemctl --user start docker-desktop',
        'systemctl --user start docker',
        'colima start',
        'say sudo systemctl start docker',
      ],
    ],
    [
      'rootless Podman by its socket, after rootless Docker',
      {
        isRoot: false,
        systemd: true,
        userUnits: ['docker.service', 'podman.socket'],
        programs: { systemctl: 'systemctl' },
      },
      ['systemctl --user start docker', 'systemctl --user start podman.socket'],
    ],
    [
      'Docker Desktop of the Windows that Linux runs in',
      { isRoot: false, wslDesktop: true },
      ['cmd.exe /c start  C:\\Program Files\\Docker\\Docker\\Docker Desktop.exe'],
    ],
    [
      'colima on Linux, for a user',
      { isRoot: false, programs: { colima: '/usr/bin/colima' } },
      ['/usr/bin/colima start'],
    ],
    ['no colima for root on Linux', { programs: { colima: '/usr/bin/colima' } }, []],
    [
      'Docker Desktop, OrbStack and colima in this order',
      { platform: 'darwin', apps: ['OrbStack', 'Docker'], programs: { colima: 'colima' } },
      ['open -a Docker', 'open -a OrbStack', 'colima start'],
    ],
    ['nothing on Windows', { platform: 'win32', programs: { dockerd: 'dockerd' } }, []],
  ])('[C3] knows %s', (_name, facts, expected) => {
    expect(startWays({ ...bare, ...facts }).map(describeWay)).toEqual(expected);
  });
});
