/** Tools about what goes in and out: published ports, decisions of the gate, changes of a copied workspace. */

import { z } from 'zod';
import { shown } from '../shown-text.ts';
import { tool } from '../tool.ts';
import { sandboxName } from './common.ts';

const mostLines = 200;
const mostPatch = 100_000;
/** Clients give up on a call after a minute, unless they are told otherwise. */
const usualWaitMs = 45_000;
const mostWaitMs = 300_000;

const port = z.object({ box: z.number(), host: z.number(), url: z.string() });

export const networkTools = [
  tool({
    name: 'publish_port',
    title: 'Publish a port',
    description: "Make a port of the sandbox reachable on the user's own machine, at 127.0.0.1.",
    input: z.object({ port: z.number().int().min(1).max(65_535), sandbox: sandboxName }),
    output: port,
    work: async ({ input, boxes, signal }) => {
      const box = await boxes.get(input.sandbox);
      const { box: inside, host } = await box.ports.publish(input.port, { signal });
      return { data: { box: inside, host, url: `http://127.0.0.1:${host}/` } };
    },
  }),
  tool({
    name: 'net_log',
    title: 'What the network gate decided',
    description:
      'The last requests of the sandbox to the network, allowed or denied. Only the user can allow a host: request_access.',
    input: z.object({ sandbox: sandboxName, denied_only: z.boolean().default(false) }),
    output: z.object({
      decisions: z.array(
        z.object({
          at: z.string(),
          allowed: z.boolean(),
          host: z.string(),
          port: z.number(),
          reason: z.string().optional(),
          advice: z.string().optional(),
        }),
      ),
    }),
    readOnly: true,
    work: async ({ input, boxes, signal }) => {
      const box = await boxes.get(input.sandbox);
      const decisions: Array<Record<string, unknown>> = [];
      for await (const { at, allowed, host, port, reason, advice } of box.net.log({ signal })) {
        if (input.denied_only && allowed) continue;
        decisions.push({
          at,
          allowed,
          host,
          port,
          ...(reason === undefined ? {} : { reason }),
          ...(advice === undefined ? {} : { advice }),
        });
        if (decisions.length > mostLines) decisions.shift();
      }
      return { data: { decisions: decisions as never } };
    },
  }),
  tool({
    name: 'request_access',
    title: 'Ask the user to allow hosts',
    description:
      'Ask the user to let the sandbox reach hosts. Waits for the answer; while it is pending go on without, the rules hold as soon as the user agrees.',
    input: z.object({
      hosts: z
        .array(z.string().min(1).max(300))
        .min(1)
        .max(20)
        .describe('such as api.x.com, *.x.com:8443 or db.x.com:5432/tcp'),
      reason: z.string().max(300).optional().describe('what for, in a sentence'),
      wait_ms: z.number().int().min(0).max(mostWaitMs).default(usualWaitMs),
      sandbox: sandboxName,
    }),
    output: z.object({
      state: z.enum(['pending', 'approved', 'denied', 'expired', 'withdrawn']),
      id: z.string(),
      advice: z.string().optional(),
    }),
    work: async ({ input, boxes, signal, progress }) => {
      const box = await boxes.get(input.sandbox);
      const { state, id } = await box.net.request(input.hosts, {
        signal,
        waitMs: input.wait_ms,
        ...(input.reason === undefined ? {} : { reason: input.reason }),
        ...(progress === undefined
          ? {}
          : { pending: ({ id: asked }) => progress(`the user is asked: sally approve ${asked}`) }),
      });
      const advice = state === 'pending' ? { advice: `The user answers with: sally approve ${id}` } : {};
      return { data: { state, id, ...advice } };
    },
  }),
  tool({
    name: 'diff',
    title: 'Changes of the workspace',
    description:
      "What is different from what was copied in, as a patch. The user applies it; the sandbox can't.",
    input: z.object({ sandbox: sandboxName }),
    output: z.object({ files: z.array(z.string()), patch: z.string(), truncated: z.boolean() }),
    readOnly: true,
    work: async ({ input, boxes, signal }) => {
      const box = await boxes.get(input.sandbox);
      const files: string[] = [];
      let patch = '';
      for await (const file of box.diff({ signal })) {
        files.push(file.change.path);
        if (patch.length < mostPatch) patch += file.bytes.toString('utf8');
      }
      const cut = shown(patch, mostPatch);
      return { data: { files, patch: cut.text, truncated: cut.truncated }, text: cut.text };
    },
  }),
];
