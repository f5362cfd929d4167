/** The secrets that an agent gets, each of which can be used. */

import { chooseSecrets } from '../../agents/choose-secrets.ts';
import type { Agent } from '../../agents/definition.ts';
import { Secrets } from '../../sdk/secrets.ts';
import { requireUsableSecrets } from '../../sdk/usable-secrets.ts';
import { note } from '../output.ts';
import type { SandboxCalls } from '../sandbox-calls.ts';

/** R8: looked at before anything is made, not in the middle of the run. `ask`: also of the services themselves. */
export async function usableSecrets(
  calls: SandboxCalls,
  agent: Agent,
  { signal, ask = false }: { readonly signal: AbortSignal; readonly ask?: boolean },
) {
  if (agent.credentials === undefined) return [];
  const secrets = new Secrets({ client: calls.client });
  const chosen = chooseSecrets(agent, await secrets.list(signal));
  await requireUsableSecrets(
    secrets,
    chosen.map(({ name }) => name),
    { agent: agent.name, ask, signal, warn: ({ name, message }) => note(`the secret ${name}: ${message}`) },
  );
  return chosen;
}
