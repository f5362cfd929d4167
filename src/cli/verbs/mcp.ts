/** The verb that serves models: mcp. */

import type { Command } from '@commander-js/extra-typings';
import { withBoxOptions } from '../options/box-options.ts';
import { collect, countValue, durationValue, portValue } from '../options/values.ts';
import { examples, type Registry } from './registry.ts';

export function registerMcpVerbs({ root, context, act }: Registry): void {
  const mcp = withBoxOptions(root.command('mcp'))
    .description(
      'serve sandboxes as MCP tools on standard input and output; what they may do is said here, not by the model',
    )
    .option('--allow-image <reference>', 'an image that the model may choose; may be repeated', collect)
    .option('--max-sandboxes <count>', 'at most so many at once', countValue, 5)
    .addHelpText(
      'after',
      examples(
        'sally mcp',
        'sally mcp --workspace --workspace-mode copy --preset npm',
        'sally mcp install claude',
      ),
    )
    .action((options) =>
      act({}, async () => {
        const { mcpCommand } = await import('../commands/mcp.ts');
        return await mcpCommand(options, context);
      }),
    );
  mcp
    .command('install')
    .description("print the settings that make a client use `sally mcp`, or write them to the client's file")
    .argument('<client>', 'claude, codex, cursor, opencode or vscode')
    .argument('[flags...]', 'flags for `sally mcp`, after --')
    .option('--write', 'write them to the file of the client')
    .option('--file <path>', 'that file, where it is not in its usual place')
    .option('--http <profile>', 'use the server of the daemon, by this profile of `sally mcp serve`')
    .addHelpText(
      'after',
      examples(
        'sally mcp install claude',
        'sally mcp install codex --write -- --workspace --workspace-mode copy',
        'sally mcp install cursor --write --file .cursor/mcp.json',
        'sally mcp install opencode --http work --write',
      ),
    )
    .action((name, flags, options) =>
      act({}, async () => {
        const { mcpInstallCommand } = await import('../commands/mcp-install.ts');
        return await mcpInstallCommand(name, flags, options, context);
      }),
    );
  registerProfileVerbs(mcp as unknown as Command, { context, act });
}

/** The server over HTTP, which the daemon has. */
function registerProfileVerbs(mcp: Command, { context, act }: Pick<Registry, 'context' | 'act'>): void {
  withBoxOptions(mcp.command('serve'))
    .description(
      'let clients of this machine use sandboxes over HTTP, by a token of their own; what they may do is said here',
    )
    .argument('<profile>', 'how it is called; one of this name is replaced, and its token is over')
    .option('--allow-image <reference>', 'an image that the model may choose; may be repeated', collect)
    .option('--max-sandboxes <count>', 'at most so many at once for each client', countValue, 5)
    .option('--max-sessions <count>', 'at most so many clients at once', countValue, 8)
    .option('--idle <duration>', 'a client that is silent for so long is gone (default 30m)', durationValue)
    .option('--port <port>', 'on 127.0.0.1; the first time one is chosen, and kept', portValue)
    .option('--json', 'machine-readable output')
    .addHelpText(
      'after',
      examples(
        'sally mcp serve work --workspace --workspace-mode copy --preset npm',
        'sally mcp serve ci --image debian:bookworm-slim --memory 1g --json',
      ),
    )
    .action((profile, options) =>
      act(options, async () => {
        const { mcpServeCommand } = await import('../commands/mcp-profiles.ts');
        return await mcpServeCommand(profile, options, context);
      }),
    );
  mcp
    .command('token')
    .description('a new token for a profile; the old one is over, and so are its clients')
    .argument('<profile>', 'the profile')
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('sally mcp token work'))
    .action((profile, options) =>
      act(options, async () => {
        const { mcpTokenCommand } = await import('../commands/mcp-profiles.ts');
        return await mcpTokenCommand(profile, options, context);
      }),
    );
  mcp
    .command('ls')
    .description('the profiles for clients over HTTP, and who is connected; never their tokens')
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('sally mcp ls', 'sally mcp ls --json'))
    .action((options) =>
      act(options, async () => {
        const { mcpLsCommand } = await import('../commands/mcp-profiles.ts');
        return await mcpLsCommand(options, context);
      }),
    );
  mcp
    .command('revoke')
    .description('end profiles: their tokens are over, and what their clients had is removed')
    .argument('<profiles...>', 'the profiles')
    .addHelpText('after', examples('sally mcp revoke work'))
    .action((profiles) =>
      act({}, async () => {
        const { mcpRevokeCommand } = await import('../commands/mcp-profiles.ts');
        return await mcpRevokeCommand(profiles, context);
      }),
    );
}
