/**
 * Which runtimes `runtime: strongest` may become, and in which order. Pure.
 *
 * It judges what the engine lists, by name. Whether a runtime works on this machine is found out later, by `sandboxes/runtime-checks.ts`; until
 * then a plan is made for the weakest candidate, so that it holds for all of them.
 */

import { SallyportError } from '../protocol/errors.ts';
import { isolationLevel, isolationLevels, strongestRuntime } from '../protocol/isolation-level.ts';
import type { Spec } from '../protocol/spec.ts';
import type { BoxPlan } from './box-plan.ts';
import type { UserNote } from './box-user.ts';
import { hasServices, requireServices, wantedServices } from './services.ts';

export interface OfferedRuntimes {
  /** `docker`, `podman`, `bubblewrap`. */
  readonly name: string;
  readonly runtimes: readonly string[];
  readonly defaultRuntime: string;
}

export interface RuntimeChoice {
  /** Strongest first, at least one. */
  readonly candidates: readonly string[];
  /** The last candidate: what it cannot do, none of them is asked for. */
  readonly weakest: string;
  /** Which runtimes cannot do what the spec asks for. */
  readonly notes: readonly UserNote[];
}

/** What is known of a runtime on this engine: it passed its check, it failed, or nobody has tried. */
export type RuntimeKnowledge = 'works' | 'fails' | 'unknown';

/** Undefined: the spec names a runtime, or none. Throws what an unknown runtime throws where there is no candidate. */
export function runtimeChoice(
  spec: Pick<Spec, 'runtime' | 'required_services' | 'optional_services' | 'profile'>,
  engine: OfferedRuntimes,
): RuntimeChoice | undefined {
  if (spec.runtime !== strongestRuntime) return undefined;
  const offered = inOrder(engine);
  const isUsable = (runtime: string): boolean => wantedServices(spec).length === 0 || hasServices(runtime);
  const candidates = offered.filter(isUsable);
  const passedOver = offered.filter((runtime) => !isUsable(runtime));
  const [first] = passedOver;
  const weakest = candidates.at(-1);
  if (weakest === undefined && first !== undefined)
    requireServices(spec, { engine: engine.name, runtime: first });
  if (weakest === undefined) throw noneOffered(engine);
  return { candidates, weakest, notes: passedOver.map(passedOverNote) };
}

/** By level, then the engine's default, then by name: kata before krun. Of containers one is enough. */
function inOrder({ runtimes, defaultRuntime }: OfferedRuntimes): readonly string[] {
  const rank = (runtime: string): number => isolationLevels.indexOf(isolationLevel(runtime));
  const isPlain = (runtime: string): boolean => rank(runtime) <= isolationLevels.indexOf('container');
  const isDefault = (runtime: string): number => (runtime === defaultRuntime ? 1 : 0);
  const strong = [...new Set(runtimes)]
    .filter((runtime) => !isPlain(runtime))
    .sort((a, b) => rank(b) - rank(a) || isDefault(b) - isDefault(a) || (a < b ? -1 : 1));
  const plain =
    defaultRuntime !== '' && isPlain(defaultRuntime)
      ? defaultRuntime
      : ['runc', 'crun'].find((runtime) => runtimes.includes(runtime));
  return plain === undefined ? strong : [...strong, plain];
}

function passedOverNote(runtime: string): UserNote {
  const message = `runtime ${nameWithLevel(runtime)} is not used: it cannot give the sandbox its services`;
  return { code: 'runtime_passed_over', message };
}

function noneOffered({ runtimes }: OfferedRuntimes): SallyportError {
  return new SallyportError('runtime_missing', `the engine lists no runtime to choose the strongest of`, {
    details: { runtime: strongestRuntime, available: [...runtimes] },
    advice: 'Name a runtime (`--runtime`), or leave it out for the default of the engine.',
  });
}

/** A plan for the weakest candidate, as one whose runtime is still to be chosen. */
export function leaveRuntimeOpen(plan: BoxPlan, { candidates, notes }: RuntimeChoice): BoxPlan {
  const { runtime: _weakest, ...open } = plan;
  return { ...open, runtimes: candidates, notes: [...plan.notes, ...notes] };
}

/** The same plan with the candidate that was chosen. What has a kernel of its own needs no quotas of another user. */
export function planOn(plan: BoxPlan, runtime: string): BoxPlan {
  const { runtimes: _candidates, ...chosen } = { ...plan, runtime };
  const level = isolationLevel(runtime);
  if (level !== 'gvisor' && level !== 'vm') return chosen;
  const { lender: _lender, sharesQuotas: _shares, ...own } = chosen;
  return own;
}

/** What a create would choose, as far as that is known without a check. */
export function expectedRuntime(
  candidates: readonly string[],
  known: (runtime: string) => RuntimeKnowledge,
): { readonly runtime: string; readonly note: string } {
  const last = candidates.at(-1);
  const open = candidates.filter((runtime) => runtime === last || known(runtime) !== 'fails');
  const [runtime, ...weaker] = open;
  if (runtime === undefined) throw new RangeError('there is no runtime to choose');
  const chosen = `the runtime would be ${nameWithLevel(runtime)}`;
  if (weaker.length === 0 || known(runtime) === 'works') return { runtime, note: chosen };
  const rest = weaker.map(nameWithLevel).join(', then ');
  return { runtime, note: `${chosen} if it passes a check when the sandbox is made, else ${rest}` };
}

export const notKnown = (why: string): string => `which runtime it would be is not known: ${why}`;

export const nameWithLevel = (runtime: string): string => `${runtime} (${isolationLevel(runtime)})`;
