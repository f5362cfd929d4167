/** Which secrets an agent is given: of each choice of its definition the first that is there. Pure. */

import { SallyportError } from '../protocol/errors.ts';
import type { KnownService } from '../protocol/known-service-names.ts';
import type { Agent } from './definition.ts';

interface Known {
  readonly name: string;
  readonly service?: KnownService | undefined;
  readonly hosts: readonly string[];
}

export function chooseSecrets(agent: Agent, known: readonly Known[]): readonly Known[] {
  return (agent.credentials ?? []).map(({ one_of: choice }) => {
    const found = firstOf(choice, known);
    if (found !== undefined) return found;
    const [first = ''] = choice;
    throw new SallyportError(
      'secret_not_found',
      `${agent.name} needs a token, and there is none of ${choice.join(', ')}`,
      {
        details: { agent: agent.name, one_of: [...choice] },
        advice: `Set it with \`sally secret set ${first}\`; its value is typed unseen, or comes from standard input.`,
      },
    );
  });
}

/** The names of the same; of a choice of which none is there, the first, which is what it needs. */
export const wantedSecrets = (agent: Agent, known: readonly Known[]): readonly string[] =>
  (agent.credentials ?? []).map(({ one_of: choice }) => firstOf(choice, known)?.name ?? choice[0] ?? '');

/** A secret of another name counts by its service. */
const firstOf = (choice: readonly string[], known: readonly Known[]): Known | undefined =>
  choice
    .map(
      (wanted) =>
        known.find(({ name }) => name === wanted) ?? known.find(({ service }) => service === wanted),
    )
    .find((secret) => secret !== undefined);
