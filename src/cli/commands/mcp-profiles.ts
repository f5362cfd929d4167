/** `sally mcp serve`, `token`, `ls` and `revoke`: what clients over HTTP may do, decided here and kept by the daemon. */

import type { McpProfileInput, McpProfileView, McpTokenView } from '../../protocol/mcp.ts';
import { DaemonClient, segment } from '../../sdk/client.ts';
import { approvedDockerfile } from '../../sdk/images.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { loadSpec } from '../load-spec.ts';
import { specFlags } from '../options/spec-from-options.ts';
import { note, print, printJson } from '../output.ts';
import { ago, table } from '../table.ts';
import type { McpOptions } from './mcp.ts';

export interface McpServeOptions extends McpOptions {
  readonly maxSessions: number;
  readonly idle?: number;
  readonly port?: number;
  readonly json?: true;
}

const all = '/v1/mcp/profiles';
const one = (name: string): string => `${all}/${segment(name)}`;

async function withClient<T>(work: (client: DaemonClient) => Promise<T>): Promise<T> {
  const client = new DaemonClient();
  try {
    return await work(client);
  } finally {
    client.close();
  }
}

export async function mcpServeCommand(
  name: string,
  options: McpServeOptions,
  context: CliContext,
): Promise<number> {
  const cwd = process.cwd();
  const approve = options.approve === true;
  const spec = await loadSpec(specFlags(options, cwd), { cwd, approve }, context);
  return await withClient(async (client) => {
    // What the file says now: a model with a live workspace could write another one.
    const approved = await approvedDockerfile(client, approve, spec);
    const profile: McpProfileInput & { readonly port?: number } = {
      spec,
      images: [...(options.allowImage ?? [])],
      max_sandboxes: options.maxSandboxes,
      max_sessions: options.maxSessions,
      ...(options.idle === undefined ? {} : { idle_ms: options.idle }),
      ...(options.port === undefined ? {} : { port: options.port }),
      ...(approved === undefined ? {} : { approved_dockerfile: approved }),
    };
    const { signal } = context;
    show(await client.json<McpTokenView>('PUT', one(name), { body: profile, signal }), options.json);
    return exitCode.ok;
  });
}

export async function mcpTokenCommand(
  name: string,
  options: { readonly json?: true },
  { signal }: CliContext,
): Promise<number> {
  return await withClient(async (client) => {
    const made = await client.json<McpTokenView>('POST', `${one(name)}/token`, { body: {}, signal });
    show(made, options.json);
    return exitCode.ok;
  });
}

function show({ name, url, token }: McpTokenView, json: true | undefined): void {
  if (json === true) {
    printJson({ name, url, token });
    return;
  }
  note(`the profile ${name} serves MCP clients of this machine; its token is shown this once`);
  print(`url    ${url}`);
  print(`token  ${token}`);
  note('a client sends it as the header `Authorization: Bearer <token>`');
}

export async function mcpProfiles(signal: AbortSignal): Promise<readonly McpProfileView[]> {
  return await withClient(
    async (client) => (await client.json<{ profiles: McpProfileView[] }>('GET', all, { signal })).profiles,
  );
}

export async function mcpLsCommand(
  options: { readonly json?: true },
  { signal }: CliContext,
): Promise<number> {
  const profiles = await mcpProfiles(signal);
  if (options.json === true) printJson(profiles);
  else if (profiles.length === 0) note('no profile serves MCP clients over HTTP');
  else {
    const rows = profiles.map(({ name, url, sessions, created_at }) => [
      name,
      url,
      String(sessions.length),
      sessions.flatMap(({ sandboxes }) => sandboxes).join(', '),
      ago(created_at),
    ]);
    for (const line of table(['NAME', 'URL', 'CLIENTS', 'SANDBOXES', 'MADE'], rows)) print(line);
  }
  return exitCode.ok;
}

export async function mcpRevokeCommand(names: readonly string[], { signal }: CliContext): Promise<number> {
  return await withClient(async (client) => {
    for (const name of names) await client.json('DELETE', one(name), { signal });
    return exitCode.ok;
  });
}
