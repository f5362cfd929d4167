/** Folders that a spec names, led elsewhere by a sandbox that may write above them. */

import { chownSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { daemonHome } from '../support/daemon-home.ts';
import { makeSandbox } from '../support/daemon-world.ts';
import { temporaryFolder } from '../support/little-engine.ts';
import { isRoot } from '../support/requires.ts';

/** Owned by somebody who is not root, as a user's folders are. */
function makeFolder(path: string): string {
  mkdirSync(path, { recursive: true });
  if (isRoot) chownSync(path, 1234, 1234);
  return path;
}

describe('[N5] the source of a mount in a live workspace', () => {
  it('cannot be led elsewhere by a sandbox, for the next one of the same spec', async () => {
    const root = makeFolder(temporaryFolder());
    const workspace = makeFolder(join(root, 'project'));
    for (const folder of ['project/data', 'project/data/seed', 'private', 'private/seed'])
      makeFolder(join(root, folder));
    writeFileSync(join(root, 'private/seed/diary'), 'dear diary');
    const spec = {
      workspace: { path: workspace },
      mounts: [{ source: join(workspace, 'data/seed'), target: '/seed', writable: true }],
    };
    const daemon = await (await daemonHome()).start();
    const first = await makeSandbox(daemon, { ...spec, name: 'first' });
    const again = await makeSandbox(daemon, { ...spec, name: 'again' });
    expect((await again.exec(['ls', '/seed'])).stdout).toBe('');
    const swap = `mv data aside && ln -s ${root}/private data && mkdir aside/seed/here`;
    expect((await first.exec(['sh', '-c', swap])).exitCode).toBe(0);
    // The host follows it: this is what the next sandbox would get.
    expect(existsSync(join(workspace, 'data/seed/diary'))).toBe(true);
    await expect(makeSandbox(daemon, { ...spec, name: 'next' })).rejects.toMatchObject({
      code: 'refused_by_policy',
      message: expect.stringContaining(`${workspace}/data is a symbolic link on the way`),
    });
    const copies = [{ source: join(workspace, 'data/seed'), target: '/copy' }];
    await expect(makeSandbox(daemon, { copies })).rejects.toMatchObject({ code: 'refused_by_policy' });
    expect((await again.exec(['ls', '/seed'])).stdout).toBe('here\n');
  });
});
