/** Sandboxes on a Docker engine, behind the port that `sandboxes/` declares. */

import { porterPath } from '../../protocol/box.ts';
import type { BoxEngine } from '../../sandboxes/ports.ts';
import { type BoxEngineTraits, boxBody } from './box-body.ts';
import { attachContainer } from './containers/attach.ts';
import { createContainer } from './containers/create.ts';
import { execInContainer } from './containers/exec.ts';
import { inspectContainer } from './containers/inspect.ts';
import { removeContainer } from './containers/remove.ts';
import { startContainer } from './containers/start.ts';
import { ensurePorterVolume, type PorterProgram } from './porter-volume.ts';
import { sweepStale } from './sweep-stale.ts';
import { type EngineVersion, engineVersion } from './system/version.ts';
import type { CallOptions, EngineConnection } from './wire/connection.ts';

const within = (signal: AbortSignal | undefined): CallOptions => (signal === undefined ? {} : { signal });

export function dockerBoxEngine(
  connection: EngineConnection,
  readPorter: (architecture: string) => Promise<PorterProgram>,
): BoxEngine {
  let version: Promise<EngineVersion> | undefined;
  const versionOnce = async (): Promise<EngineVersion> => {
    version ??= engineVersion(connection);
    try {
      return await version;
    } catch (error) {
      version = undefined;
      throw error;
    }
  };
  const traits = async (): Promise<BoxEngineTraits> => ({
    limitsReplaceDefaults: 'podman engine' in (await versionOnce()).components,
  });
  return {
    providePorter: async (fillerImage, signal) => {
      const { architecture } = await versionOnce();
      return await ensurePorterVolume(
        connection,
        await readPorter(architecture),
        fillerImage,
        within(signal),
      );
    },
    sweep: (owner, olderThanMs) => sweepStale(connection, owner, olderThanMs),
    create: async (box, signal) => {
      const body = boxBody(box, await traits());
      return await createContainer(connection, { name: box.name, body }, within(signal));
    },
    attach: (id, signal) => attachContainer(connection, id, within(signal)),
    openRelay: (id, signal) => execInContainer(connection, id, [porterPath, 'relay'], within(signal)),
    start: (id, signal) => startContainer(connection, id, within(signal)),
    state: (id) => inspectContainer(connection, id),
    remove: (id) => removeContainer(connection, id),
  };
}
