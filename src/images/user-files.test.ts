import { describe, expect, it } from 'vitest';
import { groupWithUser, passwdWithUser } from './user-files.ts';

const user = { uid: 1000, gid: 1001, home: '/home/sally', shell: '/bin/sh' };
const ours = 'sally:x:1000:1001:Sallyport:/home/sally:/bin/sh\n';
const passwd = (text: string): string => passwdWithUser(Buffer.from(text), user).toString();

describe('passwd', () => {
  it.each([
    ['nothing', '', ours],
    ['others', 'root:x:0:0::/root:/bin/sh\n', `root:x:0:0::/root:/bin/sh\n${ours}`],
    ['no line end', 'root:x:0:0::/root:/bin/sh', `root:x:0:0::/root:/bin/sh\n${ours}`],
    [
      'the uid in the middle',
      'a:x:1:1::/:\nb:x:1000:5::/b:/b\nc:x:2:2::/:\n',
      `a:x:1:1::/:\n${ours}c:x:2:2::/:\n`,
    ],
    ['the uid at the end without a line end', 'a:x:1:1::/:\nb:x:1000:5::/b:', `a:x:1:1::/:\n${ours}`],
    ['the uid twice', 'b:x:1000:5::/b:\na:x:1:1::/:\nc:x:1000:6::/c:\n', `${ours}a:x:1:1::/:\n`],
    ['the uid with zeros', 'b:x:01000:5::/b:\n', ours],
    ['our name with another uid', 'sally:x:7:7::/:\na:x:1:1::/:\n', `a:x:1:1::/:\n${ours}`],
    ['our name with our uid', 'sally:x:1000:7::/elsewhere:/bin/zsh\n', ours],
    ['a name that begins like ours', 'sallyport:x:7:7::/:\n', `sallyport:x:7:7::/:\n${ours}`],
    ['what is no entry', '# text\n\n+::::::\nx:y\n', `# text\n\n+::::::\nx:y\n${ours}`],
  ])('with %s', (_what, before, after) => {
    expect(passwd(before)).toBe(after);
  });

  it('calls nobody by that name (C2)', () => {
    const nobody = { uid: 65534, gid: 65534, home: '/tmp', shell: '/bin/sh' };
    const before = 'nobody:*:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\nsally:x:7:7::/:\n';
    expect(passwdWithUser(Buffer.from(before), nobody).toString()).toBe(
      'nobody:x:65534:65534:Sallyport:/tmp:/bin/sh\nsally:x:7:7::/:\n',
    );
    expect(groupWithUser(Buffer.from(''), 65534).toString()).toBe('nogroup:x:65534:\n');
  });

  it('keeps bytes that are no text', () => {
    const odd = Buffer.from([0xff, 0x00, 0xc3, 0x28, 0x0d, 0x0a]);
    expect(passwdWithUser(odd, user)).toEqual(Buffer.concat([odd, Buffer.from(ours)]));
  });

  it('writes a home of any letters', () => {
    const home = '/home/größe';
    expect(passwdWithUser(Buffer.alloc(0), { ...user, home }).toString('utf8')).toContain(`:${home}:`);
  });
});

describe('group', () => {
  it.each([
    ['nothing', '', 'sally:x:1001:\n'],
    ['the gid', 'root:x:0:\nstaff:x:1001:a,b\n', 'root:x:0:\nsally:x:1001:\n'],
    ['our name with another gid', 'sally:x:5:\nroot:x:0:\n', 'root:x:0:\nsally:x:1001:\n'],
  ])('with %s', (_what, before, after) => {
    expect(groupWithUser(Buffer.from(before), 1001).toString()).toBe(after);
  });
});
