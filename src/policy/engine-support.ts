/**
 * What an engine cannot do is refused before anything is made, by the field that asks for it. Pure.
 *
 * A limit that was asked for and cannot be held is refused; one that nobody asked for is left out, and `inspect` says so.
 */

import { SallyportError } from '../protocol/errors.ts';
import type { Spec } from '../protocol/spec.ts';

export interface EngineAbilities {
  readonly name: string;
  readonly limits?: { readonly memory: boolean; readonly cpus: boolean; readonly pids: boolean };
}

export function requireSupported(spec: Spec, engine: EngineAbilities): void {
  if (spec.engine !== undefined && spec.engine !== 'auto' && spec.engine !== familyOf(engine.name)) {
    throw new SallyportError(
      'daemon_engine_differs',
      `engine: ${spec.engine} was asked for, and this daemon works with ${engine.name}`,
      {
        details: { field: 'engine', engine: engine.name },
        advice: `Send the request to the daemon of ${spec.engine}: the CLI and the SDK do so by themselves.`,
      },
    );
  }
  for (const limit of ['memory', 'cpus', 'pids'] as const) {
    if (spec.limits?.[limit] === undefined || engine.limits?.[limit] !== false) continue;
    throw unsupported(
      `limits.${limit}`,
      `${engine.name} has no control groups for this user, so nothing would hold the sandbox to it`,
      `Leave \`limits.${limit}\` out, run the daemon as root, or use Docker (\`--engine docker\`).`,
    );
  }
  if (engine.name === 'bubblewrap') requireBubblewrap(spec, engine);
}

/**
 * What the strict profile promises, and takes a control group to be held. Without one its daemon is an ordinary user's, who
 * cannot become nobody or mount a /tmp without programs either.
 */
const strictRows = [
  { limit: 'memory', row: '256 MB of memory' },
  { limit: 'cpus', row: 'half a CPU' },
  { limit: 'pids', row: '100 processes' },
] as const;

/** Podman answers as Docker does, and is chosen as Docker is. */
export const familyOf = (name: string): 'docker' | 'bubblewrap' => (name === 'bubblewrap' ? name : 'docker');

function requireBubblewrap(spec: Spec, { limits }: EngineAbilities): void {
  for (const field of ['image', 'agent', 'build'] as const) {
    if (spec[field] === undefined) continue;
    throw unsupported(field, "bubblewrap has no images: a sandbox has this machine's own system, read-only");
  }
  const unheld = spec.profile === 'strict' ? strictRows.filter(({ limit }) => limits?.[limit] === false) : [];
  if (unheld.length > 0) {
    throw unsupported(
      'profile',
      `of the strict profile nothing would hold ${unheld.map(({ row }) => row).join(', ')}: bubblewrap has no control groups for this user`,
      'Use the standard profile, run the daemon as root, or use Docker (`--engine docker`).',
    );
  }
  if (spec.runtime !== undefined && spec.runtime !== 'bwrap') {
    throw unsupported('runtime', `bubblewrap has no other runtime, and so not ${spec.runtime}`);
  }
  if (spec.required_services !== undefined || spec.optional_services !== undefined) {
    throw unsupported('required_services', 'bubblewrap has no containers, and so no services');
  }
}

function unsupported(
  field: string,
  why: string,
  advice = `Leave \`${field}\` out, or use Docker (\`--engine docker\`).`,
): SallyportError {
  return new SallyportError('engine_unsupported', `${field}: ${why}`, { details: { field }, advice });
}
