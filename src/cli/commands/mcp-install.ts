/** `sally mcp install`: shows how a client is told of the server, or tells it. */

import { mkdirSync, readFileSync, realpathSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { packageInfo } from '../../lib/package-root.ts';
import {
  type McpClient,
  mcpClients,
  type ServerCommand,
  type ServerUrl,
  settingsWith,
  tokenAdvice,
  usualFile,
} from '../../mcp/client-settings.ts';
import { SallyportError } from '../../protocol/errors.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { note, print } from '../output.ts';
import { mcpProfiles } from './mcp-profiles.ts';

export interface McpInstallOptions {
  readonly write?: true;
  readonly file?: string;
  /** The profile of the daemon's server that the client is to use. */
  readonly http?: string;
}

export async function mcpInstallCommand(
  name: string,
  flags: readonly string[],
  { write, file, http }: McpInstallOptions,
  context: CliContext,
): Promise<number> {
  const client = clientOf(name);
  const path = fileOf(client, file);
  if (http !== undefined && flags.length > 0) {
    throw new SallyportError('usage', 'a client over HTTP takes no flags', {
      advice: `What it may do is said by \`sally mcp serve ${http}\` with these flags.`,
    });
  }
  const server = http === undefined ? commandWith(flags) : await placeOf(http, context);
  if (write === true) {
    replaceText(path, (before) => settingsWith(client, server, before));
    note(`${path} has it; restart ${client}`);
  } else {
    note(`for ${path}; --write puts it there`);
    print(settingsWith(client, server).trimEnd());
  }
  if (http !== undefined) note(tokenAdvice(client, http));
  return exitCode.ok;
}

const commandWith = (flags: readonly string[]): ServerCommand => ({
  command: join(packageInfo().root, 'dist/cli/sally.cjs'),
  args: ['mcp', ...flags],
});

async function placeOf(profile: string, { signal }: CliContext): Promise<ServerUrl> {
  const found = (await mcpProfiles(signal)).find(({ name }) => name === profile);
  if (found !== undefined) return { url: found.url };
  throw new SallyportError('mcp_profile_not_found', `there is no profile ${JSON.stringify(profile)}`, {
    details: { name: profile },
  });
}

function clientOf(name: string): McpClient {
  const found = mcpClients.find((client) => client === name);
  if (found !== undefined) return found;
  throw new SallyportError('usage', `${JSON.stringify(name)} is no client that is known here`, {
    advice: `Name one of ${mcpClients.join(', ')}; others take the command \`sally mcp\`.`,
  });
}

function fileOf(client: McpClient, given: string | undefined): string {
  if (given !== undefined) return resolve(given);
  const usual = usualFile[client];
  return usual.startsWith('./') ? resolve(usual) : join(homedir(), usual);
}

/** All of it or nothing, through a link if it is one, and with the mode that it has: some of these files hold keys. */
function replaceText(path: string, change: (before: string) => string): void {
  const there = statSync(path, { throwIfNoEntry: false });
  const place = there === undefined ? path : realpathSync(path);
  const text = change(there === undefined ? '' : readFileSync(place, 'utf8'));
  mkdirSync(dirname(place), { recursive: true });
  const next = `${place}.sally-${process.pid}`;
  writeFileSync(next, text, { mode: there === undefined ? 0o600 : there.mode & 0o777, flag: 'wx' });
  renameSync(next, place);
}
