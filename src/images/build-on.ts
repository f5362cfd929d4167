/** Builds a recipe's Dockerfile on an image that is there already, pulled or bootstrapped. */

import { Readable } from 'node:stream';
import { packTar } from 'modern-tar';
import type { Progress } from '../lib/progress.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import { label, ownedLabels } from '../protocol/labels.ts';
import type { ImageEngine } from '../sandboxes/ports.ts';
import { buildPastCache } from './build-past-cache.ts';
import { saysDiskFull } from './child-program.ts';
import { provisionVersion } from './provision.ts';
import type { Recipe } from './recipe.ts';

export interface BuildOnOptions {
  readonly engine: ImageEngine;
  readonly progress: Progress;
  readonly signal?: AbortSignal | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Whether packages may be missing from what is built on. */
  readonly needsNetwork: boolean;
  /** Where it needs one: that of the engine's machine, which also reaches what is reached over its proxy or VPN. */
  readonly onHostNetwork?: boolean | undefined;
  /** Another value than before makes the builder do everything again. */
  readonly freshness?: string | undefined;
  /** Beside those that every Dockerfile of ours gets. */
  readonly buildArgs?: Readonly<Record<string, string>> | undefined;
  /** Where the recipe's files are not all of it; else they are packed. */
  readonly context?: (() => Readable) | undefined;
}

export async function buildOn(base: string, recipe: Recipe, options: BuildOnOptions): Promise<string> {
  const { engine, signal } = options;
  const lastLines: string[] = [];
  const progress: Progress = (event) => {
    if (builderNoise.test(event.message)) return;
    lastLines.push(event.message);
    if (lastLines.length > keptLines) lastLines.shift();
    options.progress(event);
  };
  const request = {
    dockerfile: 'Dockerfile',
    buildArgs: {
      ...options.buildArgs,
      BASE: base,
      PROVISION_VERSION: String(provisionVersion),
      ...(options.freshness === undefined ? {} : { FRESHNESS: options.freshness }),
    },
    labels: {
      ...ownedLabels(`image-${recipe.kind}`, { [label.inputs]: recipe.inputs }),
      ...options.labels,
    },
    // An engine whose containers have no network must still be able to build on what has all packages.
    ...(options.needsNetwork ? {} : { networkMode: 'none' as const }),
    ...(options.needsNetwork && options.onHostNetwork === true ? { networkMode: 'host' as const } : {}),
  };
  try {
    const packed = options.context === undefined ? await packContext(recipe) : undefined;
    const build = (noCache: boolean): Promise<string> =>
      engine.build(
        options.context?.() ?? Readable.from([packed]),
        { ...request, noCache },
        { progress, ...(signal === undefined ? {} : { signal }) },
      );
    return await buildPastCache(build, {
      noCache: false,
      say: (message) => options.progress({ step: 'build', message }),
    });
  } catch (error) {
    if (!isSallyportError(error, 'image_build_failed')) throw error;
    // A command that found the disk full says so itself; the builder knows only that it failed.
    const code = saysDiskFull(lastLines) ? 'disk_full' : 'image_build_failed';
    throw new SallyportError(code, `${error.message} (${lastLines.slice(-2).join(' · ')})`, {
      cause: error,
      details: { output: lastLines },
    });
  }
}

/** What the builder says about its containers and layers, which is nobody's progress. */
const builderNoise = /^(--->|Removing intermediate container|Successfully built)/;
const keptLines = 12;

/** Dates and owners are fixed: the builder's cache looks at them, and a checkout's are not part of the inputs. */
async function packContext(recipe: Recipe): Promise<Uint8Array> {
  return await packTar(
    recipe.files.map(({ name, content }) => ({
      header: { name, size: content.length, mode: 0o644, mtime: new Date(0), uid: 0, gid: 0 },
      body: content,
    })),
  );
}
