/** A disk that fills up while an image is built: on an engine of the test's own, whose data is on a small file system. */

import { execFileSync } from 'node:child_process';
import { rm, statfs, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { dockerBuildTurns } from '../../src/engines/docker/build-turns.ts';
import { parseEndpoint } from '../../src/engines/docker/endpoint/endpoint.ts';
import { dockerImageEngine } from '../../src/engines/docker/image-engine.ts';
import { EngineConnection } from '../../src/engines/docker/wire/connection.ts';
import { openTransport } from '../../src/engines/docker/wire/transport.ts';
import type { ProjectImages } from '../../src/images/project/project-images.ts';
import { processHolder } from '../../src/store/process-identity.ts';
import { testEngine } from '../support/engine.ts';
import { copyTestImage, ownEngine } from '../support/own-engine.ts';
import { newProject, projectImages } from '../support/projects.ts';
import { asRoot, when } from '../support/selection.ts';

const mebibyte = 2 ** 20;
const { image, connection: shared } = testEngine();

async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}

async function resolve(images: ProjectImages, folder: string) {
  const request = { folder, network: 'none' as const };
  const approved = (await images.look(request))?.approval;
  return await images.resolve({ ...request, approved }, { progress: () => {} });
}

when(asRoot).describe('a disk that fills up during a build', () => {
  it('[R2] is disk_full, takes back what was half made, and the build works when there is room', {
    timeout: 300_000,
  }, async () => {
    const own = await ownEngine(undefined, { diskMiB: 700 });
    await own.start();
    await copyTestImage(own.socket);
    const endpoint = `unix://${own.socket}`;
    const connection = new EngineConnection(
      openTransport(parseEndpoint(endpoint)),
      endpoint,
      shared.apiVersion,
    );
    const engine = dockerImageEngine(connection);
    const turns = dockerBuildTurns(connection, processHolder());
    const images = await projectImages({ engine, turns });
    const all = (path: string) =>
      connection.json<{ Id: string }[]>({ method: 'GET', path, query: { all: true } });
    const everyImage = async () => (await all('/images/json')).map(({ Id }) => Id).sort();
    const everyContainer = () => all('/containers/json');

    const filler = join(own.folder, 'filler');
    const room = 40 * mebibyte;
    execFileSync('fallocate', ['-l', String((await freeBytes(own.folder)) - room), filler]);
    const before = { images: await everyImage(), free: await freeBytes(own.folder) };
    expect(before.free).toBeLessThan(room + mebibyte);

    const copying = await newProject({ 'Dockerfile.sallyport': `FROM ${image}\nCOPY big /tmp/\n`, big: '' });
    await truncate(join(copying, 'big'), 80 * mebibyte);
    const writing = await newProject({
      'Dockerfile.sallyport': `FROM ${image}\nUSER root\nRUN echo made > /made\nRUN head -c 80M /dev/zero > /big\n`,
    });
    for (const [folder, details] of [
      [copying, {}],
      [writing, { line: 4 }],
    ] as const) {
      await expect(resolve(images, folder)).rejects.toMatchObject({ code: 'disk_full', details });
      expect(await everyImage()).toEqual(before.images);
      expect(await everyContainer()).toEqual([]);
      expect(await freeBytes(own.folder)).toBeGreaterThan(before.free - mebibyte);
    }

    await rm(filler);
    for (const folder of [copying, writing])
      expect(await resolve(images, folder)).toMatchObject({ how: 'built' });
  });
});
