/** All verbs, in the order of the help. */

import { registerDaemonVerbs } from './daemon.ts';
import { registerFileVerbs } from './files.ts';
import { registerMachineVerbs } from './machine.ts';
import type { Registry } from './registry.ts';
import { registerResultVerbs } from './results.ts';
import { registerRunVerbs } from './running.ts';
import { registerSandboxVerbs } from './sandboxes.ts';

export function registerAll(registry: Registry): void {
  registerRunVerbs(registry);
  registerSandboxVerbs(registry);
  registerFileVerbs(registry);
  registerResultVerbs(registry);
  registerDaemonVerbs(registry);
  registerMachineVerbs(registry);
}
