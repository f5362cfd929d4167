/** `builtin_tools` of a spec: names, or a name with a mode. */

import { z } from 'zod';
import { closest } from '../lib/closest.ts';
import {
  builtinToolModes,
  builtinToolNames,
  toolMode,
  toolName,
  type WantedTool,
} from './builtin-tool-names.ts';

const name = z.enum(builtinToolNames, {
  error: ({ input }) => {
    const meant = closest(String(input), builtinToolNames);
    const known = `the built-in tools are ${builtinToolNames.join(', ')}`;
    return `is no built-in tool; ${meant === undefined ? '' : `did you mean ${meant}? `}${known}`;
  },
});

const named = z.strictObject({ name, mode: z.enum(builtinToolModes).default('protected') });

const builtinTool = z.union([name, named]).transform((tool): WantedTool => {
  if (typeof tool === 'string') return tool;
  return tool.mode === 'shared' ? { name: tool.name, mode: tool.mode } : tool.name;
});

export const builtinToolsSchema = z
  .array(builtinTool)
  .max(100)
  .superRefine((tools, context) => {
    for (const [index, tool] of tools.entries()) {
      const other = tools.findIndex((each) => toolName(each) === toolName(tool));
      const first = tools[other];
      if (first === undefined || toolMode(first) === toolMode(tool)) continue;
      const message = `names ${toolName(tool)} as ${toolMode(tool)}, and entry ${other} as ${toolMode(first)}; leave one of them out`;
      context.addIssue({ code: 'custom', path: [index], message });
    }
  });
