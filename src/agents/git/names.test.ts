import { describe, expect, it } from 'vitest';
import { leadsToGit, linkInTheWay, unwantedReference } from './hostile-names.ts';
import { publicAddress, publicRemotes } from './remote-urls.ts';

describe('addresses of remotes', () => {
  it.each([
    ['https://me:secret@git.example/a/b.git', 'https://git.example/a/b.git'],
    ['https://ghp_token@git.example/a', 'https://git.example/a'],
    ['https://git.example/a?private_token=x#y', 'https://git.example/a'],
    ['ssh://git:secret@git.example:2222/a', 'ssh://git@git.example:2222/a'],
    ['git@git.example:a/b.git', 'git@git.example:a/b.git'],
    ['git.example:a/b.git', 'git.example:a/b.git'],
    ['/home/me/other', undefined],
    ['../other', undefined],
    ['file:///home/me/other', undefined],
    ['ext::sh -c evil', undefined],
    ['ext::sh', undefined],
    ['me:secret@git.example:a', undefined],
    ['https://a\nb', undefined],
    ['', undefined],
  ])('[R7] makes of %j for the inside %j', (url, address) => {
    expect(publicAddress(url)).toBe(address);
  });

  it('[R7] leaves out remotes with names that are none', () => {
    const listed = ['remote.origin.url\nhttps://a@b.example/c', 'remote.x y.url\nhttps://b.example/c'];
    expect([...publicRemotes(listed)]).toEqual([['origin', 'https://b.example/c']]);
  });
});

describe('names from inside', () => {
  it.each(['-x', 'a/-x', 'a\u200bb', 'x\u0007', 'a/.git/b', 'a/.GIT', 'x'.repeat(201)])(
    'gives the branch %j no reference',
    (name) => {
      expect(unwantedReference(name, new Set())).toBeTypeOf('string');
    },
  );

  it('gives none to a branch that differs from another one only in case', () => {
    expect(unwantedReference('Main', new Set(['main']))).toMatch(/case/);
    expect(unwantedReference('feature/größe', new Set(['main']))).toBeUndefined();
  });

  it('finds a link that a path leads through where case does not count', () => {
    const link = { mode: '120000', object: '1', path: 'A' };
    const file = (path: string) => ({ mode: '100644', object: '2', path });
    expect(linkInTheWay([link, file('a/post-checkout')])).toBe('A');
    expect(linkInTheWay([link, { mode: '160000', object: '3', path: 'a/modules/x' }])).toBe('A');
    expect(linkInTheWay([link, file('a')])).toBe('A');
    expect(linkInTheWay([link, file('ab'), file('b/a'), file('A/was-a-link-before')])).toBeUndefined();
  });

  it('knows a link into a repository', () => {
    expect(leadsToGit(Buffer.from('../.git/hooks'))).toBe(true);
    expect(leadsToGit(Buffer.from('.GIT'))).toBe(true);
    expect(leadsToGit(Buffer.from('src/.gitignore'))).toBe(false);
  });
});
