/** Images as programs use them: what there is, what a folder's Dockerfile asks for, builds, and why one is due. */

import { resolve } from 'node:path';
import { SallyportError } from '../protocol/errors.ts';
import type {
  BuildMessage,
  BuiltView,
  DockerfileView,
  ImageView,
  PrunedImageView,
  WhyView,
} from '../protocol/images.ts';
import type { SpecInput } from '../protocol/spec.ts';
import { type Camelled, camelled } from './case.ts';
import { type ConnectionOptions, DaemonClient } from './client.ts';
import { readSse } from './sse.ts';
import { readAll } from './transport.ts';
import { errorFromWire } from './wire-error.ts';

export type ImageInfo = Camelled<ImageView>;
export type BuiltImage = Camelled<BuiltView>;
export type DockerfileInfo = Camelled<DockerfileView>;
export type ImageWhy = Camelled<WhyView>;
export type PrunedImage = Camelled<PrunedImageView>;

interface Cancel {
  readonly signal?: AbortSignal;
}

export interface ProjectOptions extends Cancel {
  /** Values for the ARGs of the Dockerfile. */
  readonly buildArgs?: Readonly<Record<string, string>>;
  /** Of its commands; absent: the engine's default. */
  readonly network?: 'default' | 'none';
}

export interface BuildOptions extends ProjectOptions {
  /** True: whatever is there now may be built. A text: exactly what was looked at, by its `approval`. */
  readonly approveDockerfile?: boolean | string;
  /** Ask registries for newer bases, and do every step again. */
  readonly rebuild?: boolean;
  readonly onProgress?: (event: { readonly step: string; readonly message: string }) => void;
}

export class Images {
  readonly #client: DaemonClient;

  constructor(connection: ConnectionOptions & { readonly client?: DaemonClient } = {}) {
    this.#client = connection.client ?? new DaemonClient(connection);
  }

  async list(options: Cancel = {}): Promise<readonly ImageInfo[]> {
    const { images } = await this.#client.json<{ images: ImageView[] }>('GET', '/v1/images', options);
    return images.map((view) => camelled(view));
  }

  /** What the folder's Dockerfile.sallyport asks for; nothing of it is done. Undefined: it has none. */
  async look(folder: string, options: ProjectOptions = {}): Promise<DockerfileInfo | undefined> {
    const view = await lookAt(this.#client, projectOf(folder, options), cancelOf(options));
    return view === undefined ? undefined : camelled(view);
  }

  /** Built, unless an image of the same inputs is there. */
  async build(folder: string, options: BuildOptions = {}): Promise<BuiltImage> {
    const { approveDockerfile, rebuild = false, onProgress = () => {} } = options;
    const project = projectOf(folder, options);
    const approved =
      approveDockerfile === true
        ? (await lookAt(this.#client, project, cancelOf(options)))?.approval
        : approveDockerfile || undefined;
    const body = { ...project, rebuild, ...(approved === undefined ? {} : { approved }) };
    for await (const message of buildMessages(this.#client, body, options.signal)) {
      if (message.type === 'progress') onProgress(message);
      else if (message.type === 'note') onProgress({ step: message.code, message: message.message });
      else if (message.type === 'failed') throw errorFromWire(message.error);
      else return camelled(message.image);
    }
    throw new SallyportError('daemon_gone', 'the daemon ended before the image was built');
  }

  /** Which inputs are other than at the last build. */
  async why(folder: string, options: ProjectOptions = {}): Promise<ImageWhy> {
    const body = projectOf(folder, options);
    return camelled(
      await this.#client.json<WhyView>('POST', '/v1/images/why', { body, ...cancelOf(options) }),
    );
  }

  /** The output of the folder's last build. */
  async log(folder: string, options: Cancel = {}): Promise<string> {
    const query = { folder: resolve(folder) };
    return (
      await readAll(await this.#client.open('GET', '/v1/images/log', { query, ...options }))
    ).toString();
  }

  async remove(reference: string, options: Cancel = {}): Promise<void> {
    await this.#client.json('DELETE', '/v1/images', { query: { reference }, ...options });
  }

  async prune(options: Cancel & { readonly dryRun?: boolean } = {}): Promise<readonly PrunedImage[]> {
    const body = { dry_run: options.dryRun ?? false };
    const { images } = await this.#client.json<{ images: PrunedImageView[] }>('POST', '/v1/images/prune', {
      body,
      ...cancelOf(options),
    });
    return images.map((view) => camelled(view));
  }

  disconnect(): void {
    this.#client.close();
  }
}

const cancelOf = ({ signal }: Cancel): Cancel => (signal === undefined ? {} : { signal });

interface Project {
  readonly folder: string;
  readonly build?: NonNullable<SpecInput['build']>;
}

function projectOf(folder: string, { buildArgs, network }: ProjectOptions): Project {
  const build = {
    ...(buildArgs === undefined ? {} : { args: { ...buildArgs } }),
    ...(network === undefined ? {} : { network }),
  };
  return { folder: resolve(folder), ...(Object.keys(build).length === 0 ? {} : { build }) };
}

async function lookAt(
  client: DaemonClient,
  body: Project,
  cancel: Cancel = {},
): Promise<DockerfileView | undefined> {
  const answer = await client.json<{ dockerfile?: DockerfileView }>('POST', '/v1/images/look', {
    body,
    ...cancel,
  });
  return answer.dockerfile;
}

/** What a create says about the Dockerfile of its workspace. Undefined: nothing was approved. */
export async function approvedDockerfile(
  client: DaemonClient,
  approve: boolean | string | undefined,
  { image, workspace, build }: SpecInput,
  cancel: Cancel = {},
): Promise<string | undefined> {
  if (approve === undefined || approve === false) return undefined;
  if (typeof approve === 'string') return approve;
  if (image !== undefined || workspace === undefined) return undefined;
  const project = { folder: resolve(workspace.path), ...(build === undefined ? {} : { build }) };
  return (await lookAt(client, project, cancel))?.approval;
}

/** The messages of a build as they come; leaving the loop cancels it. */
export async function* buildMessages(
  client: DaemonClient,
  body: object,
  signal?: AbortSignal,
): AsyncGenerator<BuildMessage> {
  const answer = await client.open('POST', '/v1/images/build', {
    body,
    ...(signal === undefined ? {} : { signal }),
  });
  const stop = (): void => void answer.destroy();
  signal?.addEventListener('abort', stop, { once: true });
  try {
    for await (const { data } of readSse(answer)) yield JSON.parse(data) as BuildMessage;
  } catch (error) {
    if (signal?.aborted !== true) throw error;
    throw new SallyportError('cancelled', 'building the image was cancelled', { cause: signal.reason });
  } finally {
    signal?.removeEventListener('abort', stop);
    answer.destroy();
  }
}
