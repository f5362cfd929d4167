/** `sally image …`: the images that there are, builds of a folder's Dockerfile, why one is due, and what may go. */

import { realpathSync } from 'node:fs';
import { formatSize } from '../../lib/sizes.ts';
import { SallyportError } from '../../protocol/errors.ts';
import type { ProjectInput } from '../../protocol/images.ts';
import { DaemonClient } from '../../sdk/client.ts';
import { Images } from '../../sdk/images.ts';
import { approveDockerfile } from '../approve-dockerfile.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { loadSpec } from '../load-spec.ts';
import { envPairs } from '../options/pairs.ts';
import { note, print, printJson } from '../output.ts';
import { progressLine } from '../progress-line.ts';
import { onEach } from '../several.ts';
import { ago, printable, table } from '../table.ts';

interface FolderOptions {
  readonly buildArg?: readonly string[];
  readonly network?: boolean;
  readonly approve?: true;
  readonly json?: true;
}

const mostShown = 20;

async function withImages(act: (images: Images, client: DaemonClient) => Promise<number>): Promise<number> {
  const client = new DaemonClient();
  try {
    return await act(new Images({ client }), client);
  } finally {
    client.close();
  }
}

export async function imageLs(
  options: { readonly all?: true; readonly json?: true },
  { signal }: CliContext,
): Promise<number> {
  return await withImages(async (images) => {
    const all = await images.list({ signal });
    // Copies with an entry for a user: there is one for each user of each image, and they take next to nothing.
    const found = options.all === true ? all : all.filter(({ kind }) => kind !== 'user');
    if (options.json === true) {
      printJson({ images: found });
      return exitCode.ok;
    }
    const rows = found.map(({ reference, id, kind, sizeBytes, usedBy, folder }) => [
      reference ?? id.slice(0, 19),
      kind,
      formatSize(sizeBytes),
      usedBy.length === 0 ? '-' : usedBy.join(', '),
      folder ?? '-',
    ]);
    for (const row of table(['IMAGE', 'KIND', 'SIZE', 'USED BY', 'FOLDER'], rows)) print(row);
    return exitCode.ok;
  });
}

export async function imageBuild(
  folder: string | undefined,
  options: FolderOptions & { readonly rebuild?: true },
  context: CliContext,
): Promise<number> {
  const project = await projectOf(folder, options, context);
  return await withImages(async (images, client) => {
    const approved = await approveDockerfile(client, project, options.approve === true, context);
    if (approved === undefined) throw noDockerfile(project.folder);
    const line = progressLine();
    const { args, network } = project.build ?? {};
    const built = await images
      .build(project.folder, {
        approveDockerfile: approved,
        ...(args === undefined ? {} : { buildArgs: args }),
        ...(network === undefined ? {} : { network }),
        rebuild: options.rebuild === true,
        signal: context.signal,
        onProgress: ({ step, message }) => {
          if (step === 'build' || step === 'pull') line.report({ step, message });
          else {
            line.done();
            note(message);
          }
        },
      })
      .finally(line.done);
    if (options.json === true) printJson(built);
    else {
      const how =
        built.how === 'present' ? 'nothing changed' : `built in ${(built.durationMs / 1000).toFixed(1)} s`;
      print(`${built.reference}  ${how}`);
    }
    return exitCode.ok;
  });
}

export async function imageWhy(
  folder: string | undefined,
  options: FolderOptions,
  context: CliContext,
): Promise<number> {
  const project = await projectOf(folder, options, context);
  return await withImages(async (images) => {
    const { args } = project.build ?? {};
    const why = await images.why(project.folder, {
      signal: context.signal,
      ...(args === undefined ? {} : { buildArgs: args }),
    });
    if (options.json === true) {
      printJson(why);
      return exitCode.ok;
    }
    const { reference, isThere, lastBuild, added, removed, changed } = why;
    if (lastBuild === undefined) {
      print(`${reference}  ${isThere ? 'is there' : 'was never built'}`);
      return exitCode.ok;
    }
    print(`last build: ${lastBuild.reference}, ${ago(lastBuild.builtAt)}`);
    const lines = [
      ...changed.map((name) => `changed  ${name}`),
      ...added.map((name) => `added    ${name}`),
      ...removed.map((name) => `removed  ${name}`),
    ];
    if (lines.length === 0)
      print(isThere ? 'nothing changed since' : 'nothing changed since, but the image is gone');
    for (const line of lines.slice(0, mostShown)) print(printable(line));
    if (lines.length > mostShown) print(`and ${lines.length - mostShown} more`);
    return exitCode.ok;
  });
}

export async function imageLog(folder: string | undefined, { signal }: CliContext): Promise<number> {
  return await withImages(async (images) => {
    const text = await images.log(realFolder(folder), { signal });
    for (const line of text.split('\n').slice(0, -1)) print(printable(line));
    return exitCode.ok;
  });
}

export async function imageRm(
  references: readonly string[],
  options: { readonly dryRun?: true },
  { signal }: CliContext,
): Promise<number> {
  return await withImages(async (images) => {
    if (options.dryRun !== true) return await onEach(references, (each) => images.remove(each, { signal }));
    const found = await images.list({ signal });
    for (const wanted of references) {
      const image = found.find(({ reference, id }) => reference === wanted || id === wanted);
      if (image === undefined) print(`${wanted}  is not there`);
      else if (image.usedBy.length > 0) print(`${wanted}  stays: ${image.usedBy.join(', ')} needs it`);
      else print(`${wanted}  would be removed  ${formatSize(image.sizeBytes)}`);
    }
    return exitCode.ok;
  });
}

export async function imagePrune(
  options: { readonly dryRun?: true; readonly json?: true },
  { signal }: CliContext,
): Promise<number> {
  return await withImages(async (images) => {
    const dryRun = options.dryRun === true;
    const pruned = await images.prune({ dryRun, signal });
    const bytes = pruned
      .filter(({ removed }) => removed || dryRun)
      .reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    if (options.json === true) {
      printJson({ images: pruned, bytes });
      return exitCode.ok;
    }
    for (const { reference, why, removed, sizeBytes } of pruned) {
      const word = removed ? 'removed' : dryRun ? 'would be removed' : 'kept, as something uses it';
      print(`${reference}  ${formatSize(sizeBytes)}  ${word}: ${why}`);
    }
    if (pruned.length === 0) note('nothing to remove');
    else note(`${formatSize(bytes)} in all, as the engine counts: shared layers count for each`);
    return exitCode.ok;
  });
}

/** Flags win over the `build` of a `sallyport.yaml`, which counts here as it does for a sandbox of the folder. */
async function projectOf(
  folder: string | undefined,
  options: FolderOptions,
  context: CliContext,
): Promise<ProjectInput> {
  const path = realFolder(folder);
  const spec = await loadSpec(
    { workspace: { path } },
    { cwd: path, approve: options.approve === true },
    context,
  );
  const given = envPairs(options.buildArg ?? [], '--build-arg');
  const build = {
    ...spec.build,
    ...(Object.keys(given).length === 0 ? {} : { args: { ...spec.build?.args, ...given } }),
    ...(options.network === false ? { network: 'none' as const } : {}),
  };
  return { folder: path, ...(Object.keys(build).length === 0 ? {} : { build }) };
}

function realFolder(folder: string | undefined): string {
  try {
    return realpathSync(folder ?? process.cwd());
  } catch (cause) {
    throw new SallyportError('usage', `${folder ?? 'this folder'} is not there`, { cause });
  }
}

function noDockerfile(folder: string): SallyportError {
  return new SallyportError('image_missing', `${folder} has no Dockerfile.sallyport`, {
    details: { folder },
    advice: 'Write one, or name another folder.',
  });
}
