/** File operations in a real sandbox: as its own user, under its own limits. */

import { describe, expect, it } from 'vitest';
import { profiles } from '../../src/policy/profiles.ts';
import { startBox } from '../support/box.ts';
import { runIn } from '../support/porter-child.ts';
import { gather } from '../support/porter-files.ts';

describe('files of a sandbox', () => {
  it("are the sandbox user's, and only what that user may touch", async () => {
    const { files } = (await startBox()).porter;
    expect(await files.write('/tmp/file', Buffer.from('inside'))).toMatchObject({
      uid: profiles.standard.user.uid,
      gid: profiles.standard.user.uid,
      mode: 0o644,
    });
    expect((await files.readAll('/tmp/file', 100)).toString()).toBe('inside');
    await expect(files.write('/etc/planted', Buffer.from('x'))).rejects.toMatchObject({
      code: 'file_denied',
    });
    await expect(files.write('/etc/passwd', Buffer.from('x'), { how: 'truncate' })).rejects.toMatchObject({
      code: 'file_denied',
    });
    await expect(files.remove('/etc', { recursive: true })).rejects.toMatchObject({ kind: 'permission' });
    // Of porter itself nothing is to be had.
    await expect(gather(files.list('/proc/1/fd'))).rejects.toMatchObject({ code: 'file_denied' });
    await expect(gather(files.read('/proc/self/mem'))).rejects.toMatchObject({ code: 'file_denied' });
  });

  it('make the round trip as a tree, are watched, and run out of space with a typed error', async () => {
    const { porter } = await startBox();
    const { files } = porter;
    await files.mkdir('/tmp/tree');
    const events = files.watch('/tmp', { recursive: true });
    expect((await events.next()).value).toMatchObject({ kind: 'ready' });
    await files.putTree('/tmp/tree', [
      { kind: 'directory', path: 'd' },
      { kind: 'file', path: 'd/run', mode: 0o755, body: Buffer.from('#!') },
    ]);
    expect((await events.next()).value).toMatchObject({ kind: 'created', path: Buffer.from('tree/d') });
    await events.return(undefined);
    expect(await gather(files.getTree('/tmp/tree'))).toMatchObject([
      { mode: 0o755 },
      { mode: 0o755, sizeBytes: 2 },
    ]);
    // All but a little of what it may have.
    const filler = 'fallocate -l $(($(df -kP /tmp | awk "NR == 2 { print \\$4 }") - 8192))K /tmp/filler';
    expect(await runIn(porter, ['sh', '-c', filler])).toMatchObject({ stderr: '' });
    const endless = async function* (): AsyncGenerator<Buffer> {
      for (const block = Buffer.alloc(2 ** 20); ; ) yield block;
    };
    await expect(files.write('/tmp/full', endless())).rejects.toMatchObject({
      code: 'file_no_space',
      details: { errno: 28 },
    });
    expect((await gather(files.list('/tmp'))).map(({ name }) => name.toString()).sort()).toEqual([
      'filler',
      'tree',
    ]);
  });
});
