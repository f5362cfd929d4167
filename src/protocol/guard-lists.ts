/** The user's own word on commands, in the user's file under `guard`. Absent: the built-in list; empty: nothing. */

import { z } from 'zod';
import { riskClasses } from './risk-classes.ts';

const entries = z.array(z.string().min(1).max(500)).max(1000);

export const guardListsSchema = z.strictObject({
  /** Commands that never run on the host. */
  forbidden: entries.optional(),
  /** Paths that no command on the host touches. */
  restricted_paths: entries.optional(),
  /** Commands that are refused. */
  blocked: entries.optional(),
  /** More programs that only read. */
  safe_tools: entries.optional(),
  /** Classes that are asked about first, besides what destroys. */
  confirm: z.array(z.enum(riskClasses)).max(riskClasses.length).optional(),
});

export type GuardLists = z.output<typeof guardListsSchema>;
