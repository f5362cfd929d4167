import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { packTar, unpackTar } from 'modern-tar';
import { describe, expect, it, onTestFinished } from 'vitest';
import { getArchive } from '../../src/engines/docker/containers/get-archive.ts';
import { putArchive } from '../../src/engines/docker/containers/put-archive.ts';
import { removeContainer } from '../../src/engines/docker/containers/remove.ts';
import { waitForExit } from '../../src/engines/docker/containers/wait.ts';
import {
  ensurePorterVolume,
  PorterVolumes,
  porterVolumeName,
} from '../../src/engines/docker/porter-volume.ts';
import { findVolume } from '../../src/engines/docker/volumes/inspect.ts';
import { removeVolume } from '../../src/engines/docker/volumes/remove.ts';
import { label } from '../../src/protocol/labels.ts';
import { makeContainer, runContainer, type TestEngine, testEngine } from '../support/engine.ts';

/** Not the real porter: any bytes under their own name, so that the volume of this test is its own. */
function program(): { readonly bytes: Buffer; readonly hash: string } {
  return { bytes: randomBytes(50_000), hash: randomBytes(32).toString('hex') };
}

function forget(engine: TestEngine, name: string): void {
  onTestFinished(() => removeVolume(engine.connection, name));
}

async function overwrite(engine: TestEngine, volume: string, bytes: Buffer, mode = 0o555): Promise<void> {
  const id = await makeContainer(engine, {
    HostConfig: { Mounts: [{ Type: 'volume', Source: volume, Target: '/porter' }] },
  });
  const header = { name: 'porter', type: 'file' as const, size: bytes.length, mode };
  const archive = Readable.from([Buffer.from(await packTar([{ header, body: bytes }]))]);
  await putArchive(engine.connection, id, '/porter', archive);
}

async function modeIn(engine: TestEngine, volume: string): Promise<number> {
  const id = await makeContainer(engine, {
    HostConfig: { Mounts: [{ Type: 'volume', Source: volume, Target: '/porter' }] },
  });
  const archive = await getArchive(engine.connection, id, '/porter/porter');
  const chunks: Buffer[] = [];
  for await (const chunk of archive as AsyncIterable<Buffer>) chunks.push(chunk);
  const [entry] = await unpackTar(Buffer.concat(chunks));
  return (entry?.header.mode ?? 0) & 0o7777;
}

describe("porter's volume", () => {
  it('is made once, carries our labels, and is found again', async () => {
    const engine = testEngine();
    const porter = program();
    forget(engine, porterVolumeName(porter.hash));
    const name = await ensurePorterVolume(engine.connection, porter, engine.image);
    expect(await ensurePorterVolume(engine.connection, porter, engine.image)).toBe(name);
    expect((await findVolume(engine.connection, name))?.labels).toMatchObject({
      [label.owned]: 'true',
      [label.kind]: 'porter',
      [label.inputs]: porter.hash,
    });
  });

  it('is refused when what is in it is not what was put there', async () => {
    const engine = testEngine();
    const porter = program();
    forget(engine, porterVolumeName(porter.hash));
    const name = await ensurePorterVolume(engine.connection, porter, engine.image);
    await overwrite(engine, name, Buffer.from('#!/bin/sh\necho planted\n'));
    await expect(ensurePorterVolume(engine.connection, porter, engine.image)).rejects.toMatchObject({
      code: 'porter_corrupt',
      advice: expect.stringContaining(`docker volume rm ${name}`),
    });
  });

  it('is completed when an earlier fill was cut off', async () => {
    const engine = testEngine();
    const porter = program();
    forget(engine, porterVolumeName(porter.hash));
    const name = await ensurePorterVolume(engine.connection, porter, engine.image);
    await overwrite(engine, name, porter.bytes.subarray(0, 1000));
    expect(await ensurePorterVolume(engine.connection, porter, engine.image)).toBe(name);
  });

  it('is put right when others may write to the program', async () => {
    const engine = testEngine();
    const porter = program();
    forget(engine, porterVolumeName(porter.hash));
    const name = await ensurePorterVolume(engine.connection, porter, engine.image);
    await overwrite(engine, name, porter.bytes, 0o777);
    expect(await modeIn(engine, name)).toBe(0o777);
    expect(await ensurePorterVolume(engine.connection, porter, engine.image)).toBe(name);
    expect(await modeIn(engine, name)).toBe(0o555);
  });

  it('can be made by several at the same time', async () => {
    const engine = testEngine();
    const porter = program();
    const name = porterVolumeName(porter.hash);
    forget(engine, name);
    const made = [1, 2, 3].map(() => ensurePorterVolume(engine.connection, porter, engine.image));
    expect(await Promise.all(made)).toEqual([name, name, name]);
  });

  it('is made anew where an engine made an empty one of its name, and not while that is used or holds something', async () => {
    const engine = testEngine();
    const porter = program();
    const name = porterVolumeName(porter.hash);
    forget(engine, name);
    // As an engine does it for a container that names a volume which nobody has.
    const user = await makeContainer(engine, {
      HostConfig: { Mounts: [{ Type: 'volume', Source: name, Target: '/porter' }] },
    });
    expect((await findVolume(engine.connection, name))?.labels).toEqual({});
    const ensure = (): Promise<string> => ensurePorterVolume(engine.connection, porter, engine.image);
    const refused = { code: 'engine_conflict', advice: expect.stringContaining(`docker volume rm ${name}`) };
    await expect(ensure()).rejects.toMatchObject(refused);
    const archive = async (entries: Parameters<typeof packTar>[0]): Promise<Readable> =>
      Readable.from([Buffer.from(await packTar(entries))]);
    const header = { name: 'of-somebody', type: 'file' as const, size: 0, mode: 0o600 };
    await putArchive(engine.connection, user, '/porter', await archive([{ header, body: '' }]));
    await removeContainer(engine.connection, user);
    await expect(ensure()).rejects.toMatchObject(refused);
    await removeVolume(engine.connection, name);
    const again = await makeContainer(engine, {
      HostConfig: { Mounts: [{ Type: 'volume', Source: name, Target: '/porter' }] },
    });
    await removeContainer(engine.connection, again);
    expect((await findVolume(engine.connection, name))?.labels).toEqual({});
    expect(await ensure()).toBe(name);
    expect((await findVolume(engine.connection, name))?.labels).toMatchObject({
      [label.inputs]: porter.hash,
    });
  });

  it('[A12] that has the name but not our label is left alone', async () => {
    const engine = testEngine();
    const porter = program();
    const name = porterVolumeName(porter.hash);
    const { createVolume } = await import('../../src/engines/docker/volumes/create.ts');
    await createVolume(engine.connection, {
      name,
      labels: { [label.test]: engine.labels()[label.test] ?? '' },
    });
    forget(engine, name);
    await expect(ensurePorterVolume(engine.connection, porter, engine.image)).rejects.toMatchObject({
      code: 'engine_conflict',
    });
  });

  it('is read back by a daemon at its first use, and again after a while and after a failure', async () => {
    const engine = testEngine();
    const porter = program();
    const name = porterVolumeName(porter.hash);
    forget(engine, name);
    let nowMs = 0;
    const volumes = new PorterVolumes(engine.connection, () => nowMs);
    expect(await volumes.provide(porter, engine.image)).toBe(name);
    // Into the file as it is: an engine may notice when one takes the place of another.
    const writer = await runContainer(engine, 'echo planted > /porter/porter', {
      User: '0:0',
      HostConfig: { Mounts: [{ Type: 'volume', Source: name, Target: '/porter' }] },
    });
    expect(await waitForExit(engine.connection, writer, { timeoutMs: 20_000 })).toBe(0);
    // Who controls the engine is trusted between two looks.
    nowMs = 9 * 60_000;
    expect(await volumes.provide(porter, engine.image)).toBe(name);
    nowMs = 11 * 60_000;
    const refused = { code: 'porter_corrupt' };
    await expect(volumes.provide(porter, engine.image)).rejects.toMatchObject(refused);
    await expect(volumes.provide(porter, engine.image)).rejects.toMatchObject(refused);
  });

  it('is filled again when somebody removed it behind the back of a daemon', async () => {
    const engine = testEngine();
    const porter = program();
    const name = porterVolumeName(porter.hash);
    forget(engine, name);
    const volumes = new PorterVolumes(engine.connection);
    await volumes.provide(porter, engine.image);
    await removeVolume(engine.connection, name);
    await Promise.all([volumes.provide(porter, engine.image), volumes.provide(porter, engine.image)]);
    expect(await ensurePorterVolume(engine.connection, porter, engine.image)).toBe(name);
  });
});
