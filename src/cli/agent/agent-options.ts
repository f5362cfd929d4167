/** What `sally agent` is told, and where it looks for agents. */

import { dirname } from 'node:path';
import type { AgentPlaces } from '../../agents/find-agent.ts';
import { readConfigEnvironment } from '../../config/config.ts';
import type { BoxOptions } from '../options/box-options.ts';

export interface AgentOptions extends BoxOptions {
  readonly prompt?: string;
  readonly model?: string;
  readonly ask?: true;
  readonly rebuild?: true;
  readonly recreate?: true;
  readonly timeout?: number;
  readonly each?: string;
  readonly jobs?: number;
  readonly json?: true;
}

export const agentPlaces = (workspace?: string): AgentPlaces => ({
  userFolder: dirname(readConfigEnvironment().userFile),
  ...(workspace === undefined ? {} : { workspace }),
});
