/** Docker contexts as the docker CLI stores them: `contexts/meta/<sha256(name)>/meta.json`, certificates beside. */

import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SallyportError } from '../../../protocol/errors.ts';
import { type Endpoint, parseEndpoint, type TlsFiles } from './endpoint.ts';

interface ContextMeta {
  readonly Endpoints?: { readonly docker?: { readonly Host?: unknown; readonly SkipTLSVerify?: unknown } };
}

async function readJson(path: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw new SallyportError('engine_endpoint_invalid', `cannot read ${path}`, { cause, details: { path } });
  }
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new SallyportError('engine_endpoint_invalid', `${path} is not valid JSON`, {
      cause,
      details: { path },
    });
  }
}

/** The context that the docker CLI would use by default; undefined when that is the built-in one. */
export async function currentContextName(dockerConfigDir: string): Promise<string | undefined> {
  const config = (await readJson(join(dockerConfigDir, 'config.json'))) as
    | { currentContext?: unknown }
    | undefined;
  const name = config?.currentContext;
  return typeof name === 'string' && name !== '' && name !== 'default' ? name : undefined;
}

export async function contextEndpoint(dockerConfigDir: string, name: string): Promise<Endpoint> {
  const digest = createHash('sha256').update(name).digest('hex');
  const meta = (await readJson(join(dockerConfigDir, 'contexts/meta', digest, 'meta.json'))) as
    | ContextMeta
    | undefined;
  const docker = meta?.Endpoints?.docker;
  if (typeof docker?.Host !== 'string' || docker.Host === '') {
    throw new SallyportError(
      'engine_endpoint_invalid',
      `docker context ${JSON.stringify(name)} does not exist`,
      {
        details: { context: name },
        advice: '`docker context ls` lists the contexts; unset DOCKER_CONTEXT to look for a local engine.',
      },
    );
  }
  const skipVerify = docker.SkipTLSVerify === true;
  const tls = await contextTls(join(dockerConfigDir, 'contexts/tls', digest, 'docker'), skipVerify);
  return parseEndpoint(docker.Host, tls);
}

async function contextTls(folder: string, skipVerify: boolean): Promise<TlsFiles | undefined> {
  const names: string[] = await readdir(folder).catch(() => []);
  const has = (name: string): boolean => names.includes(name);
  if (names.length === 0) return skipVerify ? { skipVerify } : undefined;
  return {
    skipVerify,
    ...(has('ca.pem') ? { caPath: join(folder, 'ca.pem') } : {}),
    ...(has('cert.pem') ? { certPath: join(folder, 'cert.pem') } : {}),
    ...(has('key.pem') ? { keyPath: join(folder, 'key.pem') } : {}),
  };
}
