/** The sandbox of a folder (G1): found by the folder's name, made where it is missing, started where it is stopped (G2). */

import { realpathSync } from 'node:fs';
import { workspaceName } from '../policy/names.ts';
import { isSallyportError } from '../protocol/errors.ts';
import type { CliContext } from './context.ts';
import { loadSpec, type SpecRequest } from './load-spec.ts';
import { makeSandbox } from './make-sandbox.ts';
import { note } from './output.ts';
import type { SandboxCalls } from './sandbox-calls.ts';

export const folderSandboxName = (cwd: string): string => workspaceName(realpathSync(cwd));

/** Its name, when it runs. */
export async function folderSandbox(
  calls: SandboxCalls,
  request: SpecRequest,
  context: CliContext,
): Promise<string> {
  const { signal } = context;
  const spec = await loadSpec({ workspace: { path: request.cwd } }, request, context);
  const name = spec.name ?? folderSandboxName(spec.workspace?.path ?? request.cwd);
  try {
    const path = `/v1/sandboxes/${encodeURIComponent(name)}/ensure`;
    // Nobody named the sandbox: the folder has one with each engine.
    await calls.client.json('POST', path, { body: {}, signal, otherEngines: false });
    return name;
  } catch (error) {
    if (!isSallyportError(error, 'sandbox_not_found')) throw error;
  }
  const made = await makeSandbox(calls, { spec: { ...spec, name }, reuse: true }, context, {
    approve: request.approve === true,
  });
  note(`made sandbox ${made.name} for this folder`);
  return made.name;
}
