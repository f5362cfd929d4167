/** Names that are agents, not programs: whoever runs one gets told, before an image without it says "not found". */

import { SallyportError } from '../protocol/errors.ts';

const agents: readonly string[] = ['claude', 'codex', 'opencode'];

export function refuseAgent(command: readonly string[]): void {
  const [program = ''] = command;
  if (!agents.includes(program)) return;
  throw new SallyportError('usage', `${program} is an agent, with an image, tokens and rules of its own`, {
    advice: `Run it with \`sally agent ${program}\`. Where your image has it, name it by its path: sally run --image … -- /usr/local/bin/${program}`,
  });
}
