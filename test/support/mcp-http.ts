/** A profile for MCP clients over HTTP, made by the command line, and the official client connected to it. */

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { inject, onTestFinished } from 'vitest';
import type { McpProfileView, McpTokenView } from '../../src/protocol/mcp.ts';
import { sally } from './cli.ts';
import { type Era, type TestMcp, toolCaller } from './mcp-client.ts';

export async function mcpProfile(name: string, flags: readonly string[] = []): Promise<McpTokenView> {
  const { image } = inject('engine');
  const made = await sally(['mcp', 'serve', name, '--image', image, '--json', ...flags]);
  if (made.code !== 0) throw new Error(`no profile: ${made.stderr}`);
  onTestFinished(async () => {
    await sally(['mcp', 'revoke', name]);
  });
  return JSON.parse(made.stdout) as McpTokenView;
}

export async function profileView(name: string): Promise<McpProfileView | undefined> {
  const { stdout } = await sally(['mcp', 'ls', '--json']);
  return (JSON.parse(stdout) as McpProfileView[]).find((profile) => profile.name === name);
}

export interface HttpMcp extends Omit<TestMcp, 'pid'> {
  /** As a client says that it is gone; the 2026 protocol has no word for it. */
  readonly end: () => Promise<void>;
}

export async function httpClient(
  era: Era,
  { url, token }: Pick<McpTokenView, 'url' | 'token'>,
  headers: Readonly<Record<string, string>> = {},
): Promise<HttpMcp> {
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { authorization: `Bearer ${token}`, ...headers } },
  });
  const mode = era === '2025' ? 'legacy' : { pin: '2026-07-28' };
  const client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode } });
  await client.connect(transport);
  const close = async (): Promise<void> => await client.close();
  onTestFinished(close);
  return {
    client,
    close,
    end: async () => {
      await transport.terminateSession();
      await close();
    },
    call: toolCaller(client),
  };
}
