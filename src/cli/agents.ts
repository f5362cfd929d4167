/** Names that are agents, not programs: whoever runs one gets told, before an image without it says "not found". */

import { SallyportError } from '../protocol/errors.ts';

const agents: readonly string[] = ['claude', 'codex'];

export function refuseAgent(command: readonly string[]): void {
  const [program = ''] = command;
  if (!agents.includes(program)) return;
  throw new SallyportError('usage', `${program} is an agent: \`sally agent ${program}\` will run it`, {
    advice: `That verb is not there yet. Where your image has it, name it by its path: sally run --image … -- /usr/local/bin/${program}`,
  });
}
