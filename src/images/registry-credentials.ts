/**
 * What a registry wants to see, from where the user's docker keeps it: `config.json` with its `auths`, or a credential helper
 * (`docker-credential-…`), which is run as a child. Nothing is kept: a token that was renewed is seen at the next pull.
 *
 * It must never put a secret into an error, a progress line or a log.
 */

import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Progress } from '../lib/progress.ts';
import { SallyportError } from '../protocol/errors.ts';

const helperMs = 20_000;
const mostHelperBytes = 64 * 1024;
const dockerHub = 'https://index.docker.io/v1/';
/** A user name that means: the secret is a token. */
const tokenUser = '<token>';

interface DockerConfig {
  readonly auths?: Readonly<
    Record<string, { readonly auth?: unknown; readonly identitytoken?: unknown } | undefined>
  >;
  readonly credHelpers?: Readonly<Record<string, unknown>>;
  readonly credsStore?: unknown;
}

interface Login {
  readonly username?: string;
  readonly password?: string;
  readonly identitytoken?: string;
}

export class RegistryCredentials {
  readonly #folder: string;

  /** `folder`: where docker's `config.json` is. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** As the engine takes it; undefined: there is none for this registry. A helper that fails is told and counts as none. */
  async forImage(reference: string, progress: Progress): Promise<string | undefined> {
    const server = serverOf(reference);
    const config = await this.#read();
    const helper = config.credHelpers?.[server] ?? config.credsStore;
    let login: Login | undefined;
    try {
      login = typeof helper === 'string' && helper !== '' ? await askHelper(helper, server) : undefined;
    } catch (error) {
      const why = error instanceof Error ? error.message : 'it failed';
      progress({ step: 'pull', message: `${why}; asking ${server} without a login` });
    }
    login ??= writtenLogin(config, server);
    if (login === undefined) return undefined;
    const encoded = Buffer.from(JSON.stringify({ ...login, serveraddress: server })).toString('base64');
    // With its padding: an engine takes what has none for no login at all, and does not say so.
    return encoded.replaceAll('+', '-').replaceAll('/', '_');
  }

  async #read(): Promise<DockerConfig> {
    const file = join(this.#folder, 'config.json');
    let text: string;
    try {
      text = await readFile(file, 'utf8');
    } catch {
      return {};
    }
    try {
      const value = JSON.parse(text) as unknown;
      return typeof value === 'object' && value !== null ? value : {};
    } catch {
      // Without the parser's words: they quote the file, and the file holds passwords.
      throw new SallyportError(
        'config_invalid',
        `${file} is no JSON, so no login for a registry can be read`,
        {
          details: { file },
          advice: 'Correct the file, or log in again (`docker login`).',
        },
      );
    }
  }
}

/** The key that docker uses: the host of the name, and one address for Docker Hub. */
export function serverOf(reference: string): string {
  const [first = '', ...rest] = reference.split('/');
  const isHost = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  return isHost && first !== 'docker.io' && first !== 'index.docker.io' ? first : dockerHub;
}

function writtenLogin({ auths = {} }: DockerConfig, server: string): Login | undefined {
  const found = auths[server] ?? auths[`https://${server}`] ?? auths[`http://${server}`];
  if (typeof found?.identitytoken === 'string' && found.identitytoken !== '')
    return { identitytoken: found.identitytoken };
  if (typeof found?.auth !== 'string' || found.auth === '') return undefined;
  const decoded = Buffer.from(found.auth, 'base64').toString('utf8');
  const at = decoded.indexOf(':');
  return at < 0 ? undefined : { username: decoded.slice(0, at), password: decoded.slice(at + 1) };
}

/** Undefined: it knows this registry not. */
async function askHelper(helper: string, server: string): Promise<Login | undefined> {
  // SECURITY: the name becomes the name of a program, never a path.
  if (!/^[\w.-]+$/.test(helper)) throw new Error('the credential helper has no valid name');
  const program = `docker-credential-${helper}`;
  const { code, output } = await runHelper(program, server);
  if (code !== 0) {
    // What it says when it has none goes to its standard output, by the protocol of these programs.
    if (/credentials not found/i.test(output)) return undefined;
    throw new Error(`${program} failed (${code === null ? 'killed' : `exit ${code}`})`);
  }
  try {
    const { Username, Secret } = JSON.parse(output) as { Username?: string; Secret?: string };
    if (typeof Secret !== 'string') return undefined;
    return Username === tokenUser
      ? { identitytoken: Secret }
      : { username: Username ?? '', password: Secret };
  } catch {
    throw new Error(`${program} answered with something that is no login`);
  }
}

async function runHelper(
  program: string,
  server: string,
): Promise<{ readonly code: number | null; readonly output: string }> {
  return await new Promise((resolve, reject) => {
    const child = spawn(program, ['get'], { stdio: ['pipe', 'pipe', 'ignore'], timeout: helperMs });
    const chunks: Buffer[] = [];
    let bytes = 0;
    child.stdout.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= mostHelperBytes) chunks.push(chunk);
      else child.kill('SIGKILL');
    });
    child.once('error', () => reject(new Error(`${program} could not be started`)));
    child.once('close', (code) => resolve({ code, output: Buffer.concat(chunks).toString('utf8') }));
    child.stdin.on('error', () => {});
    child.stdin.end(server);
  });
}
