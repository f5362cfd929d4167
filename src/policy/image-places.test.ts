import { expect, it } from 'vitest';
import type { BoxPlan } from './box-plan.ts';
import { imagePlaces } from './image-places.ts';

it('[A5][A11] what the user cannot make inside is made in the image', () => {
  const copy = (target: string, kind: 'file' | 'directory', isWorkspace = false) => ({
    source: '/s',
    target,
    kind,
    excludes: { patterns: [], from: [] },
    isWorkspace,
  });
  const plan = {
    user: { uid: 1000, gid: 1000, home: '/home/sally' },
    workdir: '/elsewhere',
    copies: [
      copy('/workspace', 'directory', true),
      copy('/data', 'directory'),
      copy('/etc/app.conf', 'file'),
    ],
    mounts: [
      { source: '/m', target: '/mnt/deep/in', writable: false },
      { source: '/m', target: '/home/sally/.npm', writable: true },
      { source: '/m', target: '/home/sally/.config/gh', writable: false },
    ],
  } as unknown as BoxPlan;
  expect(imagePlaces(plan)).toEqual({
    workdir: '/workspace',
    folders: ['/data', '/home/sally/.config'],
    files: ['/etc/app.conf'],
  });
  expect(imagePlaces({ ...plan, copies: [] }).workdir).toBe('/elsewhere');
});
