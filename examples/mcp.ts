/** An MCP client, as an agent has one, whose tools are a sandbox: `sally mcp` is its server, and ends with it. */

import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const image = process.env['SALLYPORT_EXAMPLE_IMAGE'];
// An installed package has `sally` on the PATH; here it is found beside its own package.json.
const sally = join(
  dirname(createRequire(import.meta.url).resolve('sallyport/package.json')),
  'dist/cli/sally.cjs',
);

// What the model may do is said here, by the flags, and not by the model.
const flags = ['--memory', '256m', ...(image === undefined ? [] : ['--image', image])];
const transport = new StdioClientTransport({
  command: sally,
  args: ['mcp', ...flags],
  env: Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== undefined)) as Record<
    string,
    string
  >,
});
const client = new Client({ name: 'example', version: '1.0.0' });
await client.connect(transport);

const call = async (name: string, input: Record<string, unknown>): Promise<Record<string, unknown>> => {
  const { isError, content, structuredContent = {} } = await client.callTool({ name, arguments: input });
  if (isError === true) throw new Error(`${name}: ${JSON.stringify(content)}`);
  return structuredContent as Record<string, unknown>;
};

await call('write_file', { path: 'sum.py', content: 'print(sum(range(101)))\n' });
const { stdout, exit_code: code } = await call('run', { command: 'python3 sum.py' });
console.log('run', code, String(stdout).trim());
// A command that fails is a result: the model reads it and goes on.
const failed = await call('run', { command: 'exit 3' });
console.log('run', failed['exit_code']);
await client.close();
