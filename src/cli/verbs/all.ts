/** All verbs, in the order of the help. */

import { registerAgentVerbs } from './agents.ts';
import { registerDaemonVerbs } from './daemon.ts';
import { registerFileVerbs } from './files.ts';
import { registerGuardVerbs } from './guard.ts';
import { registerInstallationVerbs } from './installation.ts';
import { registerMachineVerbs } from './machine.ts';
import { registerMcpVerbs } from './mcp.ts';
import { registerNetVerbs } from './net.ts';
import { registerPortVerbs } from './ports.ts';
import type { Registry } from './registry.ts';
import { registerResultVerbs } from './results.ts';
import { registerRunVerbs } from './running.ts';
import { registerSandboxVerbs } from './sandboxes.ts';
import { registerSecretVerbs } from './secrets.ts';

export function registerAll(registry: Registry): void {
  registerRunVerbs(registry);
  registerAgentVerbs(registry);
  registerSandboxVerbs(registry);
  registerPortVerbs(registry);
  registerFileVerbs(registry);
  registerResultVerbs(registry);
  registerNetVerbs(registry);
  registerSecretVerbs(registry);
  registerMcpVerbs(registry);
  registerGuardVerbs(registry);
  registerDaemonVerbs(registry);
  registerMachineVerbs(registry);
  registerInstallationVerbs(registry);
}
