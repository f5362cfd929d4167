/** The MCP server of one client: its tools, whatever they come in by. */

import { McpServer } from '@modelcontextprotocol/server';
import type { McpBoxes } from './boxes.ts';
import { commandTools } from './tools/command-tools.ts';
import { fileTools } from './tools/file-tools.ts';
import { networkTools } from './tools/network-tools.ts';
import { sandboxTools } from './tools/sandbox-tools.ts';

const instructions =
  "A sealed sandbox for commands and files. Nothing in it reaches the user's machine but what they mounted, nor the network but what they allowed.";

const allTools = [...commandTools, ...fileTools, ...networkTools, ...sandboxTools];

/** `only`: for one message, which calls this tool; telling a server of the others would take longer than the call. */
export function mcpServer(boxes: McpBoxes, version: string, only?: string): McpServer {
  const server = new McpServer({ name: 'sallyport', version }, { instructions });
  const called = allTools.filter(({ name }) => name === only);
  for (const one of called.length === 0 ? allTools : called) one.register(server, boxes);
  return server;
}
