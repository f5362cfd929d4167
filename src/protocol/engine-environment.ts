/**
 * Which engine the environment names, as a hash that a client and its daemon compare. A daemon keeps the engine that it
 * was started with; a client whose variables name another one must not use it unasked.
 */

/** In the order of their hash. The same that discovery reads, without those that only say where to look for sockets. */
const engineVariables = [
  'DOCKER_HOST',
  'DOCKER_CONTEXT',
  'DOCKER_CONFIG',
  'DOCKER_TLS_VERIFY',
  'DOCKER_CERT_PATH',
  'SALLYPORT_ENGINE_DIR',
  'SALLYPORT_ENGINE',
] as const;

/** What can be asked for. `auto`: a container engine, or what was chosen before on this machine. */
export const engineNames = ['auto', 'docker', 'bubblewrap'] as const;
export type EngineName = (typeof engineNames)[number];

export function hashEngineEnvironment(env: Readonly<Record<string, string | undefined>>): string {
  // Empty is the same as absent, as it is for discovery.
  const named = (name: string): string => (env[name] === 'auto' ? '' : (env[name] ?? ''));
  // One that does not matter is left out, so that what a version without it hashed stays the same.
  const names = engineVariables.filter((name) => name !== 'SALLYPORT_ENGINE' || named(name) !== '');
  const text = names.map((name) => `${name}=${named(name)}\0`).join('');
  return fnv1a64(Buffer.from(text)).toString(16).padStart(16, '0');
}

/** Both ends belong to one user, so nobody gains by a collision; a cryptographic hash takes long to load. */
function fnv1a64(bytes: Buffer): bigint {
  let hash = 0xcbf29ce484222325n;
  for (const byte of bytes) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return hash;
}
