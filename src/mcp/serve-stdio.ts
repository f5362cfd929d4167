/** The MCP server on standard input and output: for one client, until that client is gone. */

import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { type BoxesOptions, McpBoxes } from './boxes.ts';
import { mcpServer } from './server.ts';

export interface ServeOptions extends BoxesOptions {
  readonly version: string;
}

/** Resolves when the client is gone and what was made for it is removed. */
export async function serveOnStdio(options: ServeOptions): Promise<void> {
  const boxes = new McpBoxes(options);
  const { version, report, signal } = options;
  const handle = serveStdio(() => mcpServer(boxes, version), { onerror: report });
  await new Promise<void>((resolve) => {
    process.stdin.once('end', resolve);
    process.stdin.once('close', resolve);
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
  await handle.close();
  await boxes.close();
}
