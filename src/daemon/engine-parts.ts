/** What the daemon needs of whichever engine it works with, and how bubblewrap gives it. */

import { join } from 'node:path';
import { bubblewrapBoxEngine } from '../engines/bubblewrap/box-engine.ts';
import { explainBox } from '../engines/bubblewrap/explain-box.ts';
import { HostImages } from '../engines/bubblewrap/host-images.ts';
import { noServices } from '../engines/bubblewrap/no-services.ts';
import { keeperBinaryPath, porterBinaryPath } from '../porter/binary.ts';
import type { BoxRequest } from '../protocol/box.ts';
import { SallyportError } from '../protocol/errors.ts';
import type { ServiceEngine } from '../sandboxes/ports/services.ts';
import type { BoxEngine, BoxHome, BoxImages } from '../sandboxes/ports.ts';
import type { ImageSurface } from './image-surface.ts';

/** What an engine is asked for, and as a line of shell. */
export interface DescribedBox {
  readonly request: unknown;
  /** Of a container engine. */
  readonly docker_run?: string;
  /** Of bubblewrap. */
  readonly command_line?: string;
}

export interface EngineParts {
  readonly engine: BoxEngine;
  readonly services: ServiceEngine;
  readonly images: BoxImages;
  /** For the routes; it asks which sandboxes use an image. */
  readonly imageSurface: (
    sandboxes: () => readonly { readonly name: string; readonly imageId?: string | undefined }[],
  ) => ImageSurface;
  /** As a person would name it. */
  readonly endpoint: string;
  /** Of the host, and never to be mounted. */
  readonly sockets: readonly string[];
  readonly describeBox: (box: BoxRequest, home: BoxHome) => Promise<DescribedBox>;
}

const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';

export async function bubblewrapParts({
  stateDir,
  uid,
  checkpoint = () => {},
}: {
  readonly stateDir: string;
  readonly uid: number;
  readonly checkpoint?: (name: string) => void;
}): Promise<EngineParts> {
  const folder = join(stateDir, 'bubblewrap');
  const images = new HostImages();
  const engine = bubblewrapBoxEngine({
    folder,
    isRoot: uid === 0,
    porterPath: porterBinaryPath(architecture),
    keeperPath: keeperBinaryPath(architecture),
    homeOf: (image) => images.homeOf(image),
    checkpoint,
  });
  const { endpoint } = await engine.facts();
  return {
    engine,
    images,
    services: noServices,
    imageSurface: () => noImages,
    endpoint,
    sockets: [],
    describeBox: async (box, home) => {
      const { request, commandLine } = await explainBox(box, home, {
        folder,
        isRoot: uid === 0,
        keeperPath: keeperBinaryPath(architecture),
        bubblewrapPath: endpoint,
      });
      return { request, command_line: commandLine };
    },
  };
}

const refuse = (): never => {
  throw new SallyportError(
    'engine_unsupported',
    "bubblewrap has no images: a sandbox has this machine's system",
  );
};

const noImages: ImageSurface = {
  list: async () => [],
  look: async () => undefined,
  build: refuse,
  why: async () => refuse(),
  log: refuse,
  remove: async () => refuse(),
  prune: async () => [],
};
