/** The images of agents as a sandbox is given them: they must be there, because making one installs packages and needs consent. */

import { SallyportError } from '../protocol/errors.ts';
import type { ImageEngine } from '../sandboxes/ports.ts';
import type { ImageTemplate } from './box-images.ts';
import { readTemplate, type TemplateName, templatePlace } from './template.ts';

const agents: readonly TemplateName[] = ['claude', 'codex', 'opencode', 'coding'];

export function agentTemplates(engine: ImageEngine): ReadonlyMap<string, ImageTemplate> {
  return new Map(agents.map((agent) => [agent, ({ signal }) => installed(engine, agent, signal)]));
}

async function installed(
  engine: ImageEngine,
  agent: TemplateName,
  signal: AbortSignal | undefined,
): ReturnType<ImageTemplate> {
  const { repository, tag } = await readTemplate(templatePlace(agent), await engine.architecture(signal));
  const reference = `${repository}:${tag}`;
  const facts = await engine.find(reference, signal);
  if (facts !== undefined) return { reference, id: facts.id, env: facts.env };
  throw new SallyportError('image_missing', `the image of ${agent}, ${reference}, is not on this engine`, {
    details: { image: reference, agent },
    advice: `Make it with \`sally provision ${agent}\`, or name an image.`,
  });
}
