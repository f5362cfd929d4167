/** Builds a project's image and tags it. What fails or is cancelled leaves neither a tag nor an image nor a container. */

import type { Progress } from '../../lib/progress.ts';
import { formatSize } from '../../lib/sizes.ts';
import { dockerfileName } from '../../protocol/dockerfile-name.ts';
import { isSallyportError, SallyportError } from '../../protocol/errors.ts';
import { label, ownedLabels } from '../../protocol/labels.ts';
import type { ImageEngine } from '../../sandboxes/ports.ts';
import { buildPastCache } from '../build-past-cache.ts';
import { saysDiskFull } from '../child-program.ts';
import type { BuildLog } from '../ports.ts';
import { BuildProgress } from './build-progress.ts';
import { contextTar } from './context-tar.ts';
import type { ProjectSource } from './project-source.ts';

/** A context that is larger takes minutes before the first step begins. */
const largeContextBytes = 2 * 2 ** 30;

export interface BuildProjectRequest {
  readonly source: ProjectSource;
  readonly fingerprint: string;
  readonly repository: string;
  readonly tag: string;
  readonly noCache: boolean;
  readonly labels: Readonly<Record<string, string>>;
}

export interface BuildProjectOptions {
  readonly engine: ImageEngine;
  readonly log: BuildLog;
  readonly progress: Progress;
  readonly signal: AbortSignal;
  /** Throws if what it was to be built on is no longer that. */
  readonly requireSameBases: () => Promise<void>;
  readonly largeContextBytes?: number;
}

/** Returns the id. */
export async function buildProject(
  { source, fingerprint, repository, tag, noCache, labels }: BuildProjectRequest,
  options: BuildProjectOptions,
): Promise<string> {
  const { engine, log, progress, signal } = options;
  warnOfSize(source, options);
  const request = {
    dockerfile: dockerfileName,
    buildArgs: source.args,
    labels: { ...ownedLabels('image-project', { [label.inputs]: fingerprint }), ...labels },
    ...(source.network === 'none' ? { networkMode: 'none' as const } : {}),
  };
  const build = async (withoutCache: boolean): Promise<string> => {
    const total = source.dockerfile.instructions.length;
    const steps = new BuildProgress(total, progress, (text) => log.write(text));
    const options = { progress: steps.read, signal };
    try {
      const built = await engine.build(
        contextTar(source, signal),
        { ...request, noCache: withoutCache },
        options,
      );
      steps.end();
      return built;
    } catch (error) {
      throw withPlace(error, source, steps);
    }
  };
  const id = await buildPastCache(build, {
    noCache,
    say: (message) => {
      progress({ step: 'build', message });
      log.write(`${message}\n`);
    },
  });
  try {
    await options.requireSameBases();
    signal.throwIfAborted();
    await engine.tag(id, repository, tag);
  } catch (error) {
    await engine.remove(id);
    throw error;
  }
  return id;
}

function warnOfSize({ bytes, largest, files }: ProjectSource, options: BuildProjectOptions): void {
  if (bytes < (options.largeContextBytes ?? largeContextBytes)) return;
  const paths = largest.map(({ path, sizeBytes }) => `${path} (${formatSize(sizeBytes)})`).join(', ');
  const message = `the build context has ${files} files of ${formatSize(bytes)}; the largest are ${paths}. Leave out what is not needed with .dockerignore`;
  options.progress({ step: 'warning', message });
  options.log.write(`warning: ${message}\n`);
}

function withPlace(error: unknown, { dockerfile, folder }: ProjectSource, steps: BuildProgress): unknown {
  const isFull = isSallyportError(error, 'disk_full');
  if (!isFull && !isSallyportError(error, 'image_build_failed')) return error;
  const { file, instructions } = dockerfile;
  const failed = instructions[steps.step - 1];
  const said = error.message.replace(/^build: /, '');
  const parsed = /parse error (?:on )?line (\d+)/.exec(said)?.[1];
  const line = failed?.line ?? (parsed === undefined ? undefined : Number(parsed));
  const where = line === undefined ? file : `${file}, line ${line}`;
  const what = failed === undefined ? '' : ` (${failed.name} ${failed.text.slice(0, 80)})`;
  // A command that found the disk full says so itself; the builder knows only that it failed.
  const code = isFull || saysDiskFull(steps.lastLines) ? 'disk_full' : 'image_build_failed';
  return new SallyportError(code, `${where}${what}: ${said}`, {
    details: {
      file,
      output: [...steps.lastLines],
      ...(line === undefined ? {} : { line }),
    },
    ...(code === 'disk_full' ? {} : { advice: `Read the output: \`sally image log ${folder}\`.` }),
    cause: error,
  });
}
