/**
 * Profiles of the MCP server over HTTP: `mcp.json` in the state folder, for its owner alone, replaced as a whole. Of a token
 * its hash is kept and nothing else. A file that cannot be understood opens nothing and is not overwritten.
 */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { SallyportError } from '../protocol/errors.ts';
import { type McpProfile, mcpProfileBody, profileName } from '../protocol/mcp.ts';
import { errno, stateFailure } from './state-failure.ts';
import { replaceFile } from './state-folder.ts';

const storedProfile = mcpProfileBody.extend({
  token_sha256: z.string().regex(/^[0-9a-f]{64}$/),
  created_at: z.iso.datetime(),
});
type StoredProfile = z.infer<typeof storedProfile>;

const fileSchema = z.strictObject({
  version: z.literal(1),
  /** Where clients were told to find the server; the same after a restart. */
  port: z.number().int().min(1).max(65535).optional(),
  profiles: z.record(profileName, storedProfile),
});
type Stored = z.infer<typeof fileSchema>;

export interface KeptProfile extends McpProfile {
  readonly name: string;
  /** Of the token, in hexadecimal digits. */
  readonly tokenHash: string;
  readonly createdAt: string;
}

export class McpProfileFile {
  readonly #path: string;
  #loaded: Stored | undefined;

  constructor(stateDir: string) {
    this.#path = join(stateDir, 'mcp.json');
  }

  get port(): number | undefined {
    return this.#all().port;
  }

  list(): readonly KeptProfile[] {
    return Object.entries(this.#all().profiles)
      .map(([name, stored]) => kept(name, stored))
      .sort((a, b) => a.name.localeCompare(b.name));
  }

  find(name: string): KeptProfile | undefined {
    return this.list().find((profile) => profile.name === name);
  }

  savePort(port: number): void {
    this.#write({ ...this.#all(), port });
  }

  save({ name, tokenHash, createdAt, ...profile }: KeptProfile): void {
    const { spec, images, maxSandboxes, maxSessions, idleMs, approvedDockerfile } = profile;
    const stored: StoredProfile = {
      spec,
      images: [...images],
      max_sandboxes: maxSandboxes,
      max_sessions: maxSessions,
      idle_ms: idleMs,
      ...(approvedDockerfile === undefined ? {} : { approved_dockerfile: approvedDockerfile }),
      token_sha256: tokenHash,
      created_at: createdAt,
    };
    const all = this.#all();
    this.#write({ ...all, profiles: { ...all.profiles, [name]: stored } });
  }

  remove(name: string): void {
    const all = this.#all();
    const profiles = Object.fromEntries(Object.entries(all.profiles).filter(([own]) => own !== name));
    this.#write({ ...all, profiles });
  }

  #all(): Stored {
    this.#loaded ??= load(this.#path);
    return this.#loaded;
  }

  #write(stored: Stored): void {
    replaceFile(this.#path, `${JSON.stringify(stored, null, 2)}\n`);
    this.#loaded = stored;
  }
}

function load(path: string): Stored {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    if (errno(cause) === 'ENOENT') return { version: 1, profiles: {} };
    throw stateFailure('reading the MCP profiles', path, cause);
  }
  const parsed = fileSchema.safeParse(parse(text));
  if (parsed.success) return parsed.data;
  throw new SallyportError('mcp_profiles_broken', `${path} cannot be understood`, { details: { path } });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function kept(name: string, stored: StoredProfile): KeptProfile {
  const { spec, images, max_sandboxes, max_sessions, idle_ms, approved_dockerfile } = stored;
  return {
    name,
    // It was parsed before it was kept, and is again by each create.
    spec: spec as KeptProfile['spec'],
    images,
    maxSandboxes: max_sandboxes,
    maxSessions: max_sessions,
    idleMs: idle_ms,
    ...(approved_dockerfile === undefined ? {} : { approvedDockerfile: approved_dockerfile }),
    tokenHash: stored.token_sha256,
    createdAt: stored.created_at,
  };
}
