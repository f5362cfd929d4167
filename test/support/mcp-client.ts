/** The official client of the protocol, connected to `sally mcp` as an agent would be. */

import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { inject, onTestFinished } from 'vitest';
import { packageInfo } from '../../src/lib/package-root.ts';
import { DaemonClient } from '../../src/sdk/client.ts';
import { followEvents } from '../../src/sdk/events.ts';
import { engineVariables, imageFlags } from './engine-under-test.ts';
import { stateFolder } from './state-folder.ts';

export interface ToolAnswer {
  readonly isError: boolean;
  readonly text: string;
  readonly data: Record<string, unknown>;
}

export interface TestMcp {
  readonly client: Client;
  readonly pid: number;
  readonly call: (
    tool: string,
    input: Record<string, unknown>,
    options?: Parameters<Client['callTool']>[1],
  ) => Promise<ToolAnswer>;
  readonly close: () => Promise<void>;
}

/** `2025`: the handshake of old. `2026`: no handshake, every request says all. */
export type Era = '2025' | '2026';

export async function mcpClient(
  era: Era,
  flags: readonly string[] = [],
  options: { readonly cwd?: string } = {},
): Promise<TestMcp> {
  const { endpoint } = inject('engine');
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: ['--', join(packageInfo().root, 'dist/cli/sally.cjs'), 'mcp', ...imageFlags(), ...flags],
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: process.env['HOME'] ?? '/',
      DOCKER_HOST: endpoint,
      SALLYPORT_STATE_DIR: stateFolder(),
      ...engineVariables,
    },
    cwd: options.cwd ?? stateFolder(),
    stderr: 'inherit',
  });
  const mode = era === '2025' ? 'legacy' : { pin: '2026-07-28' };
  const client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode } });
  await client.connect(transport);
  const close = async (): Promise<void> => await client.close();
  onTestFinished(close);
  const { pid } = transport;
  if (pid === null) throw new Error('the server has no process');
  return {
    client,
    pid,
    close,
    call: toolCaller(client),
  };
}

export const toolCaller =
  (client: Client): TestMcp['call'] =>
  async (name, input, options) => {
    const answer = await client.callTool({ name, arguments: input }, options);
    const [first] = answer.content;
    return {
      isError: answer.isError === true,
      text: first?.type === 'text' ? first.text : '',
      data: (answer.structuredContent ?? {}) as Record<string, unknown>,
    };
  };

/** Names of sandboxes that are no more, as the daemon tells them; from before they are made on. */
export async function deletions(): Promise<AsyncGenerator<string>> {
  const client = new DaemonClient({ stateDir: stateFolder(), anyEngine: true });
  const { sequence } = await client.json<{ sequence: number }>('GET', '/v1/health');
  return (async function* () {
    for await (const event of followEvents(client, { since: sequence })) {
      if (event.type === 'sandbox.state' && event.to === 'DELETED') yield event.name;
    }
  })();
}
