/** Reads a definition that a person wrote. Apart from the rest, because the readers of YAML and schemas take long to load. */

import { parseConfigText, readConfigFile } from '../config/yaml-file.ts';
import { type AgentDefinition, agentSchema } from './definition.ts';

/** Undefined: there is no such file. */
export async function readAgent(file: string): Promise<AgentDefinition | undefined> {
  const text = await readConfigFile(file);
  return text === undefined ? undefined : agentSchema.parse(parseConfigText(file, text, agentSchema));
}
