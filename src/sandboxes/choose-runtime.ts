/**
 * Chooses the runtime of a sandbox whose spec says `strongest`: the first candidate that passes its check. The choice is made once, with the
 * first container, and written down before that: a container that is made again gets the same runtime.
 */

import { unlessAborted } from '../lib/unless-aborted.ts';
import { nameWithLevel, planOn } from '../policy/strongest-runtime.ts';
import type { EngineFacts } from './ports.ts';
import type { SandboxRecord } from './records.ts';
import type { MadeParts, RuntimeChecks } from './runtime-checks.ts';
import type { SandboxWorld, Tell } from './world.ts';

export interface RuntimeWork {
  readonly record: () => SandboxRecord;
  readonly note: (news: Partial<SandboxRecord>) => void;
  readonly runtimes: RuntimeChecks;
  readonly tell: Tell;
  readonly signal: AbortSignal;
}

export async function chooseRuntime(
  { engine, store }: Pick<SandboxWorld, 'engine' | 'store'>,
  work: RuntimeWork,
  parts: MadeParts,
): Promise<void> {
  const { id, plan, isolation } = work.record();
  const { runtimes: candidates } = plan;
  if (candidates === undefined) return;
  const say = (code: string, message: string): void =>
    void store.events.append({ type: 'sandbox.note', sandbox_id: id, code, message });
  // Without another to take, the start of the sandbox itself is the check.
  const facts = candidates.length > 1 ? await engine.facts(work.signal) : undefined;
  const runtime = await firstThatWorks(candidates, facts, { work, parts, say });
  work.note({ plan: planOn(plan, runtime), isolation: { ...isolation, runtime } });
  say('runtime_chosen', `runtime ${nameWithLevel(runtime)} was chosen; no stronger one can be used here`);
}

async function firstThatWorks(
  candidates: readonly string[],
  facts: EngineFacts | undefined,
  {
    work: { runtimes, tell, signal },
    parts,
    say,
  }: {
    readonly work: RuntimeWork;
    readonly parts: MadeParts;
    readonly say: (code: string, message: string) => void;
  },
): Promise<string> {
  const last = candidates.at(-1);
  if (last === undefined) throw new RangeError('there is no runtime to choose');
  if (facts === undefined) return last;
  for (const runtime of candidates.slice(0, -1)) {
    signal.throwIfAborted();
    if (runtimes.known(facts, runtime) === 'unknown')
      tell({ step: 'runtime', message: `checking the runtime ${runtime}` });
    const failure = await unlessAborted(runtimes.failure(facts, runtime, parts), signal);
    if (failure === undefined) return runtime;
    say('runtime_failed', `runtime ${nameWithLevel(runtime)} is not used: its check failed: ${failure}`);
  }
  return last;
}
