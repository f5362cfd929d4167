/** `sally mcp`: sandboxes as tools for a model, on standard input and output. What they may do is decided here, by its flags. */

import { packageInfo } from '../../lib/package-root.ts';
import { serveOnStdio } from '../../mcp/serve-stdio.ts';
import { DaemonClient } from '../../sdk/client.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { loadSpec } from '../load-spec.ts';
import type { BoxOptions } from '../options/box-options.ts';
import { specFlags } from '../options/spec-from-options.ts';
import { note } from '../output.ts';

export interface McpOptions extends BoxOptions {
  readonly allowImage?: readonly string[];
  readonly maxSandboxes: number;
}

export async function mcpCommand(options: McpOptions, context: CliContext): Promise<number> {
  const cwd = process.cwd();
  const approve = options.approve === true;
  const spec = await loadSpec(specFlags(options, cwd), { cwd, approve }, context);
  const client = new DaemonClient({
    ...(spec.engine === undefined ? {} : { engine: spec.engine }),
    otherEngines: false,
  });
  try {
    await serveOnStdio({
      client,
      rules: { spec, images: options.allowImage ?? [], mostSandboxes: options.maxSandboxes },
      approveDockerfile: approve,
      version: packageInfo().version,
      signal: context.signal,
      report: (error) => note(error.message),
    });
    return exitCode.ok;
  } finally {
    client.close();
  }
}
