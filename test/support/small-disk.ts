/** An engine of a file's own whose data is on a small disk, with daemons that work with it. */

import { chmod, mkdtemp, rm, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { connect } from '../../src/engines/docker/connect.ts';
import type { EngineConnection } from '../../src/engines/docker/wire/connection.ts';
import { type LoopDiskType, mountLoopDisk } from './loop-disk.ts';
import { copyTestImage, ownEngine } from './own-engine.ts';

export interface SmallDisk {
  readonly connection: () => EngineConnection;
  readonly freeBytes: () => Promise<number>;
}

/** With the test image, for all tests of a `describe`. */
export function smallDisk(type: LoopDiskType, mebibytes: number): SmallDisk {
  const ends: (() => Promise<unknown>)[] = [];
  let made: { readonly connection: EngineConnection; readonly folder: string } | undefined;
  beforeAll(async () => {
    const engine = await ownEngine(
      (dockerd) => withDriver(dockerd, type === 'btrfs' ? 'btrfs' : 'overlay2', ends),
      {
        mount: (folder) => mountLoopDisk(folder, type, mebibytes),
        atEnd: (end) => void ends.push(end),
      },
    );
    await engine.start();
    await copyTestImage(engine.socket);
    made = { connection: await connect({ kind: 'unix', path: engine.socket }), folder: engine.folder };
  });
  afterAll(async () => {
    for (const end of ends.reverse()) await end();
  });
  const here = () => {
    if (made === undefined) throw new Error('the engine was not started');
    return made;
  };
  return {
    connection: () => here().connection,
    freeBytes: async () => {
      const { bavail, bsize } = await statfs(here().folder);
      return bavail * bsize;
    },
  };
}

/** Engines differ in which one they take by themselves, and the newest take another way of storing than any of these. */
async function withDriver(
  dockerd: string,
  driver: string,
  ends: (() => Promise<unknown>)[],
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sally-driver-'));
  ends.push(() => rm(folder, { recursive: true, force: true }));
  const program = join(folder, 'dockerd');
  await writeFile(program, `#!/bin/sh\nexec ${dockerd} --storage-driver=${driver} "$@"\n`);
  await chmod(program, 0o755);
  return program;
}
