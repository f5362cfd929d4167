import type { Readable } from 'node:stream';
import type { Labels } from '../types.ts';
import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { beforeStream, progressLines } from './progress-stream.ts';

export interface BuildRequest {
  readonly dockerfile?: string;
  readonly tag?: string;
  readonly buildArgs?: Readonly<Record<string, string>>;
  readonly labels?: Labels;
  readonly networkMode?: string;
  readonly noCache?: boolean;
  readonly platform?: string;
}

export interface BuildOutput {
  readonly text: string;
  /** Set on the line with which the builder names its result. */
  readonly imageId?: string;
}

/**
 * The classic builder. Yields its output as it comes and no faster than it is consumed: a reader that stops, stops the
 * build. Leaving the loop early, or aborting, cancels the build.
 */
export async function* buildImage(
  connection: EngineConnection,
  context: Readable,
  request: BuildRequest,
  options: CallOptions = {},
): AsyncGenerator<BuildOutput> {
  const stream = await connection
    .stream({
      method: 'POST',
      path: '/build',
      query: {
        version: '1',
        dockerfile: request.dockerfile,
        t: request.tag,
        buildargs: JSON.stringify(request.buildArgs ?? {}),
        labels: JSON.stringify(request.labels ?? {}),
        networkmode: request.networkMode,
        nocache: request.noCache,
        platform: request.platform,
        rm: true,
        forcerm: true,
      },
      headers: { 'Content-Type': 'application/x-tar' },
      upload: context,
      notFound: 'image_missing',
      timeoutMs: 300_000,
      ...options,
    })
    .catch(beforeStream('build', 'image_build_failed'));
  try {
    for await (const line of progressLines(stream, 'build', 'image_build_failed')) {
      if (line.stream !== undefined) yield { text: line.stream };
      else if (line.aux?.ID !== undefined) yield { text: '', imageId: line.aux.ID };
      else if (line.status !== undefined) yield { text: `${line.id ? `${line.id}: ` : ''}${line.status}\n` };
    }
  } finally {
    stream.destroy();
  }
}
