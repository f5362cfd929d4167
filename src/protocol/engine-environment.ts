/**
 * Which engine the environment names, as a hash that a client and its daemon compare. A daemon keeps the engine that it
 * was started with; a client whose variables name another one must not use it unasked.
 */

import { createHash } from 'node:crypto';

/** In the order of their hash. The same that discovery reads, without those that only say where to look for sockets. */
const engineVariables = [
  'DOCKER_HOST',
  'DOCKER_CONTEXT',
  'DOCKER_CONFIG',
  'DOCKER_TLS_VERIFY',
  'DOCKER_CERT_PATH',
  'SALLYPORT_ENGINE_DIR',
] as const;

export function hashEngineEnvironment(env: Readonly<Record<string, string | undefined>>): string {
  const hash = createHash('sha256');
  // Empty is the same as absent, as it is for discovery.
  for (const name of engineVariables) hash.update(`${name}=${env[name] ?? ''}\0`);
  return hash.digest('hex').slice(0, 16);
}
