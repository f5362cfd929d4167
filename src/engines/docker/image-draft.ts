/** A copy of an image that is changed from outside: a container that is created, written to, committed and never started. */

import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { unpackTar } from 'modern-tar';
import { SallyportError } from '../../protocol/errors.ts';
import { label, type OwnedKind, ownedLabels } from '../../protocol/labels.ts';
import type { ImageDraft } from '../../sandboxes/ports.ts';
import { createContainer } from './containers/create.ts';
import { getArchive } from './containers/get-archive.ts';
import { putArchive } from './containers/put-archive.ts';
import { removeContainer } from './containers/remove.ts';
import { statArchive } from './containers/stat-archive.ts';
import { commitContainer } from './images/commit.ts';
import { imageHasCommand } from './images/inspect.ts';
import { openAlone } from './open-alone.ts';
import { engineVersion, isPodman } from './system/version.ts';
import type { EngineConnection } from './wire/connection.ts';

export interface DraftRequest {
  readonly image: string;
  /** One at a time, in the whole engine. */
  readonly name: string;
  readonly kind: OwnedKind;
  readonly labels: Readonly<Record<string, string>>;
}

export async function openDraft(connection: EngineConnection, request: DraftRequest): Promise<ImageDraft> {
  const { image, kind } = request;
  const needsCommand = !(await imageHasCommand(connection, image)) && !(await takesNoCommand(connection));
  const body = {
    Image: image,
    // As an entrypoint it can be taken back; as a command it would stay.
    ...(needsCommand ? { Entrypoint: ['-'] } : {}),
    // They go into the image with the commit, but for the kind: a container that somebody makes of the image carries the
    // image's labels, and must not be taken for one of these.
    Labels: ownedLabels('image-draft', request.labels),
    HostConfig: { NetworkMode: 'none' },
  };
  const id = await openAlone(connection, request.name, (name) => createContainer(connection, { name, body }));
  return {
    stat: (path) => statArchive(connection, id, path),
    read: async (path) => await onlyFile(await getArchive(connection, id, path), path),
    write: (archive) => putArchive(connection, id, '/', archive, { replaceOtherKinds: true }),
    commit: async (repository, tag) => {
      const changes = [`LABEL ${label.kind}=${kind}`];
      // Docker takes it back by the configuration, and would put it back by the line; Podman reads only the line.
      if (needsCommand && isPodman(await engineVersion(connection))) changes.push('ENTRYPOINT []');
      const config = needsCommand ? { Entrypoint: [] } : {};
      await commitContainer(connection, id, { repository, tag, changes, config });
    },
    discard: () => removeContainer(connection, id),
  };
}

/** Docker, and Podman before 5, create no container without a command. Podman since 5 does, and its commit cannot clear one. */
async function takesNoCommand(connection: EngineConnection): Promise<boolean> {
  const version = await engineVersion(connection);
  return isPodman(version) && Number.parseInt(version.engine, 10) >= 5;
}

async function onlyFile(archive: Readable, path: string): Promise<Buffer> {
  const [entry] = await unpackTar(await buffer(archive));
  if (entry?.header.type === 'file' && entry.data !== undefined) return Buffer.from(entry.data);
  throw new SallyportError('engine_protocol', `the engine did not send the file ${path}`);
}
