/** The image operations of this engine behind the port that image making declares. */

import { SallyportError } from '../../protocol/errors.ts';
import { label } from '../../protocol/labels.ts';
import type { ImageEngine } from '../../sandboxes/ports.ts';
import { openDraft } from './image-draft.ts';
import { buildImage } from './images/build.ts';
import { BuildSteps, removeBuildLeftovers } from './images/build-leftovers.ts';
import { importImage } from './images/import.ts';
import { findImage } from './images/inspect.ts';
import { listImages } from './images/list.ts';
import { pullImage } from './images/pull.ts';
import { removeImage } from './images/remove.ts';
import { tagImage } from './images/tag.ts';
import { engineVersion } from './system/version.ts';
import { tryOut } from './try-out.ts';
import type { CallOptions, EngineConnection } from './wire/connection.ts';

const within = (signal: AbortSignal | undefined): CallOptions => (signal === undefined ? {} : { signal });

export function dockerImageEngine(connection: EngineConnection): ImageEngine {
  return {
    architecture: async (signal) => (await engineVersion(connection, within(signal))).architecture,
    find: (reference, signal) => findImage(connection, reference, within(signal)),
    pull: (reference, { progress, signal, credentials }) =>
      pullImage(connection, reference, {
        progress,
        ...(credentials === undefined ? {} : { credentials }),
        ...within(signal),
      }),
    import: (rootfs, { changes, progress, signal }) =>
      importImage(connection, rootfs, { changes }, { progress, ...within(signal) }),
    build: async (context, request, { progress, signal }) => {
      let id: string | undefined;
      const steps = new BuildSteps();
      try {
        for await (const output of buildImage(connection, context, request, within(signal))) {
          if (output.imageId !== undefined) id = output.imageId;
          steps.read(output.text);
          const message = output.text.trim();
          if (message !== '') progress({ step: 'build', message });
        }
      } catch (error) {
        await removeBuildLeftovers(connection, steps);
        throw error;
      }
      if (id === undefined)
        throw new SallyportError('engine_protocol', 'the engine built an image and named no id');
      return id;
    },
    openDraft: (request) => openDraft(connection, request),
    tryOut: (box, argv, options) => tryOut(connection, box, argv, options),
    listOwned: async (kind) => {
      const kinds = kind === undefined ? [] : [`${label.kind}=${kind}`];
      return await listImages(connection, [`${label.owned}=true`, ...kinds]);
    },
    tag: (image, repository, tag) => tagImage(connection, image, { repository, tag }),
    remove: (reference) => removeImage(connection, reference),
  };
}
