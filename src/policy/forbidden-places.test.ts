import { describe, expect, it } from 'vitest';
import { forbiddenPlaces } from './forbidden-places.ts';
import { forbiddenSource, type HostPlaces } from './forbidden-sources.ts';

describe.each(['linux', 'darwin'])('[O4] the list of forbidden places on %s', (platform) => {
  const home = platform === 'darwin' ? '/Users/me' : '/home/me';
  const places: HostPlaces = { platform, homes: [home], stateDirs: [], engineSockets: [], programs: [] };
  const list = forbiddenPlaces(platform);
  const judged = (path: string, writable: boolean) => forbiddenSource(path, writable, places)?.rule;

  it('has nothing that the policy allows', () => {
    for (const { path, inHome, rule, refused } of list) {
      const real = inHome ? `${home}/${path}` : path;
      // A home folder is refused for being one, and a folder of start files for the logins in it.
      const rules = rule === 'system' ? [rule, 'home'] : rule === 'startup' ? [rule, 'credentials'] : [rule];
      expect(rules, real).toContain(judged(real, true));
      if (refused === 'always') expect(rules, real).toContain(judged(real, false));
    }
    expect(list.filter(({ rule }) => rule === 'credentials').map(({ path }) => path)).toContain('.ssh');
    expect(judged(`${home}/project`, true)).toBeUndefined();
  });

  it('has each place once, and cannot be changed', () => {
    expect(new Set(list.map(({ path, inHome }) => `${inHome} ${path}`)).size).toBe(list.length);
    expect(Object.isFrozen(list)).toBe(true);
    expect(list.every((entry) => Object.isFrozen(entry))).toBe(true);
  });
});
