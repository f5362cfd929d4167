/** Tools about sandboxes as a whole. */

import { z } from 'zod';
import type { Sandbox } from '../../sdk/sandbox.ts';
import { clientTool } from '../tool.ts';

const shownBox = z.object({
  name: z.string(),
  state: z.string(),
  image: z.string(),
  workdir: z.string(),
  memory_bytes: z.number(),
  cpus: z.number(),
  running_commands: z.number(),
});

function boxView({ info }: Sandbox): z.input<typeof shownBox> {
  const { name, state, image, workdir, limits, runningExecs } = info;
  return {
    name,
    state,
    image,
    workdir,
    memory_bytes: limits.memoryBytes,
    cpus: limits.cpus,
    running_commands: runningExecs,
  };
}

export const sandboxTools = [
  clientTool({
    name: 'sandbox_create',
    title: 'Make another sandbox',
    description:
      'Make one more sandbox. Not needed for the first: other tools make and use a default one when no sandbox is named.',
    // Whoever asks for more than this is told, and does not believe that he has it.
    input: z.strictObject({
      name: z.string().optional().describe('a-z, 0-9, "-"; made up if absent'),
      image: z.string().optional().describe('one that the user allowed; absent: the default'),
      memory: z.string().optional().describe('such as 512m; at most what the user allowed'),
      cpus: z.number().positive().optional(),
      pids: z.number().int().positive().optional(),
    }),
    output: shownBox,
    work: async ({ input, boxes }) => ({ data: boxView(await boxes.create(input)) }),
  }),
  clientTool({
    name: 'sandbox_list',
    title: 'List sandboxes',
    description: 'Your sandboxes.',
    input: z.object({}),
    output: z.object({ sandboxes: z.array(shownBox) }),
    readOnly: true,
    work: async ({ boxes, signal }) => {
      await Promise.all(boxes.all().map((box) => box.refresh({ signal })));
      return { data: { sandboxes: boxes.all().map(boxView) } };
    },
  }),
  clientTool({
    name: 'sandbox_remove',
    title: 'Remove a sandbox',
    description: 'Remove a sandbox with all that is in it. What was not brought out is lost.',
    input: z.object({ sandbox: z.string() }),
    output: z.object({ removed: z.string() }),
    work: async ({ input, boxes }) => {
      await boxes.remove(input.sandbox);
      return { data: { removed: input.sandbox } };
    },
  }),
];
