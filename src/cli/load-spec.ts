/**
 * The spec of a sandbox that is made here: what flags say, joined with files and environment where there are any.
 *
 * The reader of these files is heavy, so it is loaded only if there is something for it to read. What a project file
 * widens is asked about on a terminal, and refused where there is none.
 */

import { lstatSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readConfigEnvironment } from '../config/config.ts';
import type { LoadedConfig } from '../config/load-config.ts';
import { withRealSources } from '../config/real-sources.ts';
import type { SpecInput } from '../protocol/spec.ts';
import type { CliContext } from './context.ts';
import { flagNames, type SpecFlags } from './options/spec-from-options.ts';
import { note } from './output.ts';

export interface SpecRequest {
  readonly cwd: string;
  readonly approve?: boolean;
}

export async function loadSpec(
  flags: SpecFlags,
  request: SpecRequest,
  context: CliContext,
): Promise<SpecInput> {
  const environment = readConfigEnvironment();
  const hasVariables = Object.keys(environment.source.fragment).length > 0;
  const { workspace } = flags;
  const isWhole = workspace === undefined || workspace.path !== undefined;
  if (isWhole && !hasVariables && !isThere(environment.userFile) && !mayHaveProject(request.cwd)) {
    return withRealSources(flags) as SpecInput;
  }
  return (await loadFromAll(flags, request, context)).input;
}

/** With every value's origin. */
export async function loadFromAll(
  flags: SpecFlags,
  { cwd, approve }: SpecRequest,
  { signal }: CliContext,
): Promise<LoadedConfig> {
  const { loadConfig } = await import('../config/load-config.ts');
  const canAsk = process.stdin.isTTY && process.stderr.isTTY;
  return await loadConfig({
    cwd,
    environment: readConfigEnvironment(),
    flags,
    flagNames,
    approve: approve === true,
    ...(canAsk
      ? {
          ask: async ({ file, lines }) => {
            note(`${file} asks for:`);
            for (const line of lines) note(`  ${line}`);
            const { askYesNo } = await import('./ask.ts');
            return await askYesNo('Allow that for this folder?', signal);
          },
        }
      : {}),
    now: () => new Date(),
  });
}

const projectNames = ['sallyport.yaml', 'sallyport.yml'];

/** Here or anywhere above; whether it counts is for its reader to say. */
function mayHaveProject(cwd: string): boolean {
  for (let folder = cwd; ; folder = dirname(folder)) {
    if (projectNames.some((name) => isThere(join(folder, name)))) return true;
    if (dirname(folder) === folder) return false;
  }
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}
