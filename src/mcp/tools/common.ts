/** What the inputs of several tools have in common. */

import { posix } from 'node:path';
import { z } from 'zod';
import type { Sandbox } from '../../sdk/sandbox.ts';

export const sandboxName = z.string().optional().describe('absent: the default one');

export const boxPath = z.string().min(1).describe('absolute, or relative to the working folder');

export const placeIn = (box: Sandbox, path: string): string => posix.resolve(box.info.workdir, path);
