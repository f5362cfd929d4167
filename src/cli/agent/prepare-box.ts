/**
 * Makes sure that an agent can begin: its sandbox runs and is the one that is asked for (R4), its rules and tokens work (R9), its
 * settings are there. What does not work is said before anything is started.
 */

import { posix } from 'node:path';
import type { Agent } from '../../agents/definition.ts';
import { fillFile, readEnvironment } from '../../agents/fill-file.ts';
import { isSallyportError, SallyportError } from '../../protocol/errors.ts';
import type { SpecInput } from '../../protocol/spec.ts';
import type { SandboxView, VerifyView } from '../../protocol/views.ts';
import { SandboxFiles } from '../../sdk/sandbox-files.ts';
import type { CliContext } from '../context.ts';
import { makeSandbox } from '../make-sandbox.ts';
import { note } from '../output.ts';
import type { SandboxCalls } from '../sandbox-calls.ts';
import { printable } from '../table.ts';

export interface BoxWish {
  readonly spec: SpecInput & { readonly name: string };
  readonly approve: boolean;
  readonly recreate: boolean;
  /** A new image as well. */
  readonly rebuild: boolean;
}

export async function ensureAgentBox(
  calls: SandboxCalls,
  wish: BoxWish,
  context: CliContext,
): Promise<SandboxView> {
  const { spec, approve, recreate, rebuild } = wish;
  const { signal } = context;
  if (rebuild && spec.image === undefined && spec.agent !== undefined) {
    const { makeTemplateImage } = await import('../made-image.ts');
    await makeTemplateImage(spec.agent, { rebuild: true }, signal);
  }
  const existing = await find(calls, spec.name, signal);
  if (existing !== undefined && !recreate && !rebuild) {
    await requireSame(calls, spec, signal);
    return await calls.change(spec.name, 'ensure', {}, { signal });
  }
  // Changes that exist nowhere else are not removed: then this fails and says so.
  if (existing !== undefined) await calls.remove(spec.name, { force: false });
  return await makeSandbox(calls, { spec, reuse: true }, context, { approve });
}

async function find(
  calls: SandboxCalls,
  name: string,
  signal: AbortSignal,
): Promise<SandboxView | undefined> {
  const all = await calls.list([], { signal });
  return all.find((sandbox) => sandbox.name === name && sandbox.state !== 'DELETING');
}

async function requireSame(
  calls: SandboxCalls,
  spec: SpecInput & { readonly name: string },
  signal: AbortSignal,
): Promise<void> {
  try {
    await calls.create({ spec, reuse: true }, { signal });
  } catch (error) {
    if (!isSallyportError(error, 'sandbox_exists')) throw error;
    throw new SallyportError('sandbox_exists', error.message, {
      details: error.details,
      advice: '`--recreate` makes it anew and loses what is in its home; `--name` makes another one.',
      cause: error,
    });
  }
}

/** R9. `needed`: the hosts of its tokens. What else cannot be reached is told, and keeps nobody from starting. */
export async function requireReady(
  calls: SandboxCalls,
  box: SandboxView,
  needed: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<void> {
  const { checks } = await calls.verify(box.id, { signal });
  const failed = checks.filter(({ status }) => status === 'failed');
  const bad = failed.filter((check) => !isOptional(check, needed));
  for (const { name, found } of failed.filter((check) => isOptional(check, needed))) {
    note(`could not ${printable(name)} (${printable(found)}); going on without it`);
  }
  if (bad.length === 0) return;
  const lines = bad.map(({ name, found, advice }) =>
    printable(`${name}: ${found}${advice === undefined ? '' : `. ${advice}`}`),
  );
  throw new SallyportError(
    'agent_not_ready',
    `sandbox ${box.name} is not ready for its agent:\n  ${lines.join('\n  ')}`,
    { details: { sandbox: box.name, checks: bad.map(({ name }) => name) } },
  );
}

function isOptional({ name }: VerifyView['checks'][number], needed: ReadonlySet<string>): boolean {
  const host = /^reach (.+):\d+$/.exec(name)?.[1];
  return host !== undefined && !needed.has(host);
}

/** The agent's settings, where there are none: what it or its user changed inside stays. */
export async function writeSettings(
  calls: SandboxCalls,
  box: SandboxView,
  { files: wanted = [] }: Agent,
  signal: AbortSignal,
): Promise<void> {
  const files = new SandboxFiles(calls.client, box.id);
  const missing: { readonly path: string; readonly content: string; readonly needs?: string | undefined }[] =
    [];
  for (const { path, content, needs } of wanted) {
    const inside = posix.join(box.user.home, path.slice(2));
    const isThere = await files.stat(inside, { signal }).then(
      () => true,
      (error: unknown) => {
        if (isSallyportError(error, 'file_not_found')) return false;
        throw error;
      },
    );
    if (!isThere) missing.push({ path: inside, content, needs });
  }
  if (missing.length === 0) return;
  const env: Readonly<Record<string, string>> = {
    ...(await environmentOf(calls, box, signal)),
    WORKDIR: box.workdir,
  };
  for (const { path, content, needs } of missing) {
    if (needs !== undefined && env[needs] === undefined) continue;
    await files.mkdir(posix.dirname(path), { parents: true, signal });
    await files.write(path, fillFile(content, env), { mode: 0o600, signal });
  }
}

async function environmentOf(
  calls: SandboxCalls,
  { id }: SandboxView,
  signal: AbortSignal,
): Promise<Readonly<Record<string, string>>> {
  const { id: exec } = await calls.exec(id, { argv: ['env', '-0'], timeout_ms: 30_000 }, { signal });
  const { stdout } = await calls.wait(id, exec, { signal });
  return readEnvironment(stdout.data);
}
