/** R8: whether the tokens of a run can be used, seen to before it begins. */

import { SallyportError } from '../protocol/errors.ts';
import type { SecretCheck, Secrets } from './secrets.ts';

export interface UsableOptions {
  /** For whom; it stands in what is said. */
  readonly agent?: string;
  /** Also of the services themselves. */
  readonly ask?: boolean;
  readonly signal?: AbortSignal;
  /** Told of each that ends soon. */
  readonly warn?: (check: SecretCheck) => void;
}

/** Rejects with `secret_unusable`, with all that is wrong and what to do, before anything is begun. */
export async function requireUsableSecrets(
  secrets: Secrets,
  names: readonly string[],
  { agent = 'this run', ask = false, signal, warn }: UsableOptions = {},
): Promise<void> {
  const checks = await Promise.all(names.map((name) => secrets.check(name, signal, { ask })));
  for (const check of checks) if (check.state === 'expiring') warn?.(check);
  const bad = checks.filter(({ state }) => state !== 'valid' && state !== 'expiring');
  const [first] = bad;
  if (first === undefined) return;
  const lines = bad.map(({ name, state, message }) => `the secret ${name} is ${state}: ${message}`);
  throw new SallyportError('secret_unusable', `${agent} was not started: ${lines.join('; ')}`, {
    details: { secrets: bad.map(({ name }) => name) },
    advice: `Then see \`sally secret check ${first.name}\`.`,
  });
}
