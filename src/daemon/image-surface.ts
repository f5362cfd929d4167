/** What the routes need of images, declared by the one who needs it, and how `images/` answers it. */

import type { z } from 'zod';
import type { ImageCatalogue } from '../images/image-catalogue.ts';
import type { ImageRecords } from '../images/ports.ts';
import type { ProjectImages } from '../images/project/project-images.ts';
import type { ProjectSource } from '../images/project/project-source.ts';
import { deferred } from '../lib/deferred.ts';
import { SallyportError } from '../protocol/errors.ts';
import type {
  BuildMessage,
  buildBody,
  DockerfileView,
  ImageView,
  PrunedImageView,
  projectBody,
  WhyView,
} from '../protocol/images.ts';
import { errorBody, presentable } from './http-error.ts';

type Project = z.output<typeof projectBody>;
type Build = z.output<typeof buildBody>;

export interface ImageSurface {
  list(): Promise<readonly ImageView[]>;
  look(project: Project, signal: AbortSignal): Promise<DockerfileView | undefined>;
  /** Leaving it early cancels the build, unless somebody else waits for the same. */
  build(request: Build, signal: AbortSignal): AsyncIterable<BuildMessage>;
  why(project: Project, signal: AbortSignal): Promise<WhyView>;
  log(folder: string): string;
  remove(reference: string): Promise<void>;
  prune(dryRun: boolean): Promise<readonly PrunedImageView[]>;
}

export interface ImageParts {
  readonly projects: ProjectImages;
  readonly catalogue: ImageCatalogue;
  readonly records: ImageRecords;
}

const requestOf = ({ folder, build = {} }: Project) => ({ folder, ...build });

export function imageSurface({ projects, catalogue, records }: ImageParts): ImageSurface {
  return {
    list: async () =>
      (await catalogue.list()).map(({ reference, id, kind, sizeBytes, folder, usedBy }) => ({
        ...(reference === undefined ? {} : { reference }),
        id,
        kind,
        size_bytes: sizeBytes,
        ...(folder === undefined ? {} : { folder }),
        used_by: [...usedBy],
      })),
    look: async (project, signal) => {
      const source = await projects.look(requestOf(project), signal);
      return source === undefined ? undefined : dockerfileView(source);
    },
    build: (request, signal) => buildMessages(projects, request, signal),
    why: async (project, signal) => {
      const why = await projects.why(requestOf(project), signal);
      if (why === undefined) throw noDockerfile(project.folder);
      const { folder, reference, isThere, added, removed, changed, lastBuild } = why;
      return {
        folder,
        reference,
        is_there: isThere,
        added: [...added],
        removed: [...removed],
        changed: [...changed],
        ...(lastBuild === undefined ? {} : { last_build: lastBuildView(lastBuild) }),
      };
    },
    log: (folder) => {
      const text = records.readLog(folder);
      if (text !== undefined) return text;
      throw new SallyportError('image_missing', `no build of ${folder} was logged`, {
        details: { folder },
        advice: 'Run `sally image build` in the folder first.',
      });
    },
    remove: (reference) => catalogue.remove(reference),
    prune: async (dryRun) =>
      (await catalogue.prune({ dryRun })).map(({ sizeBytes, ...rest }) => ({
        ...rest,
        size_bytes: sizeBytes,
      })),
  };
}

function dockerfileView({
  folder,
  dockerfile,
  approval,
  files,
  bytes,
  network,
}: ProjectSource): DockerfileView {
  return {
    folder,
    file: `${folder}/${dockerfile.file}`,
    approval,
    bases: [...dockerfile.bases],
    runs: dockerfile.instructions.filter(({ name }) => name === 'RUN').length,
    files,
    bytes,
    network,
  };
}

function lastBuildView(last: {
  readonly reference: string;
  readonly fingerprint: string;
  readonly builtAt: string;
  readonly durationMs?: number;
}): NonNullable<WhyView['last_build']> {
  const { reference, fingerprint, builtAt, durationMs } = last;
  return {
    reference,
    fingerprint,
    built_at: builtAt,
    ...(durationMs === undefined ? {} : { duration_ms: durationMs }),
  };
}

function noDockerfile(folder: string): SallyportError {
  return new SallyportError('image_missing', `${folder} has no Dockerfile.sallyport`, {
    details: { folder },
    advice: 'Write one, or name an image (`--image`).',
  });
}

async function* buildMessages(
  projects: ProjectImages,
  request: Build,
  signal: AbortSignal,
): AsyncGenerator<BuildMessage> {
  const waiting: BuildMessage[] = [];
  let bell = deferred<void>();
  const tell = (message: BuildMessage): void => {
    waiting.push(message);
    bell.resolve();
  };
  const { approved, rebuild } = request;
  const leaving = new AbortController();
  const work = projects
    .resolve(
      { ...requestOf(request), approved, rebuild },
      {
        progress: (event) => tell({ type: 'progress', ...event }),
        note: (code, message) => tell({ type: 'note', code, message }),
        signal: AbortSignal.any([signal, leaving.signal]),
      },
    )
    .then((image): BuildMessage => {
      if (image === undefined) throw noDockerfile(request.folder);
      const { reference, id, fingerprint, how, durationMs } = image;
      return { type: 'done', image: { reference, id, fingerprint, how, duration_ms: durationMs } };
    })
    .catch(
      (error: unknown): BuildMessage =>
        ({ type: 'failed', ...errorBody(presentable(error)) }) as BuildMessage,
    )
    .then(tell);
  try {
    for (;;) {
      for (const message of waiting.splice(0)) {
        yield message;
        if (message.type === 'done' || message.type === 'failed') return;
      }
      await bell.promise;
      bell = deferred<void>();
    }
  } finally {
    leaving.abort();
    await work;
  }
}
