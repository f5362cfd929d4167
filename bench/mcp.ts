/** `npm run bench -- mcp`: a command by the tool `run`, over stdio and over HTTP in both eras, against the same by the SDK. */

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { engineVersion } from '../src/engines/docker/system/version.ts';
import { Sandbox } from '../src/sdk/sandbox.ts';
import { type CliHome, sallyPath, withCliHome } from './cli-home.ts';
import { benchConnection, testImage } from './engine.ts';
import { type Contender, compete, makeReport, present } from './harness.ts';

const perRound = 10;

type Era = '2025' | '2026';
type Transport = Parameters<Client['connect']>[0];

export async function main(args: readonly string[]): Promise<number> {
  const rounds = Number(args.find((arg) => arg.startsWith('--rounds='))?.split('=')[1] ?? 20);
  const connection = await benchConnection();
  const image = await testImage(connection);
  const clients: Client[] = [];
  const connected = async (era: Era, transport: Transport): Promise<Client> => {
    const mode = era === '2025' ? 'legacy' : { pin: '2026-07-28' };
    const client = new Client({ name: 'bench', version: '1.0.0' }, { versionNegotiation: { mode } });
    await client.connect(transport);
    clients.push(client);
    return client;
  };
  const measure = async ({ stateDir, env, sally }: CliHome): Promise<void> => {
    await sally('create', '--image', image, '--name', 'bench');
    const words = await sally('mcp', 'serve', 'bench', '--image', image, '--name', 'bench', '--json');
    const { url, token } = JSON.parse(words) as { readonly url: string; readonly token: string };
    const byHttp = (): Transport =>
      new StreamableHTTPClientTransport(new URL(url), {
        requestInit: { headers: { authorization: `Bearer ${token}` } },
      });
    const byStdio = (): Transport =>
      new StdioClientTransport({
        command: sallyPath,
        args: ['mcp', '--image', image, '--name', 'bench'],
        env,
        cwd: stateDir,
      });
    const box = await Sandbox.connect('bench', { stateDir, anyEngine: true });
    const contenders: readonly Contender[] = [
      {
        name: 'SDK',
        perRound,
        once: async () => void (await box.exec(['/bin/sh', '-c', 'true'], { check: true })),
      },
      byTool('MCP stdio 2025', await connected('2025', byStdio())),
      byTool('MCP stdio 2026', await connected('2026', byStdio())),
      byTool('MCP http 2025', await connected('2025', byHttp())),
      byTool('MCP http 2026', await connected('2026', byHttp())),
    ];
    const rows = await compete(contenders, rounds);
    present(makeReport('mcp', rows, { engine: (await engineVersion(connection)).engine }), args);
  };
  await withCliHome(connection, async (home) => {
    try {
      await measure(home);
    } finally {
      // Before the daemon is stopped: what they have they would start it again for.
      for (const client of clients) await client.close().catch(() => {});
    }
  });
  return 0;
}

const byTool = (name: string, client: Client): Contender => ({
  name,
  perRound,
  once: async () => {
    const { isError, structuredContent } = await client.callTool({
      name: 'run',
      arguments: { command: 'true' },
    });
    const { exit_code: code } = (structuredContent ?? {}) as { exit_code?: number };
    if (isError === true || code !== 0) throw new Error(`run ended with ${code}`);
  },
});
