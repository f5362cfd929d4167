/**
 * How clients are told of a server: the text of their settings with ours in it, and all else as it was. Pure. A token is never
 * part of it: the settings name where the client finds it.
 */

import { SallyportError } from '../protocol/errors.ts';

export const mcpClients = ['claude', 'codex', 'cursor', 'opencode', 'vscode'] as const;
export type McpClient = (typeof mcpClients)[number];

export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
}
/** The daemon's server. */
export interface ServerUrl {
  readonly url: string;
}
export type ServerPlace = ServerCommand | ServerUrl;

const serverName = 'sallyport';
/** Of the environment of the client, for those that read it from there. */
export const tokenVariable = 'SALLYPORT_MCP_TOKEN';
/** Of the question by which VS Code gets it; the editor keeps the answer among its secrets. */
const tokenInput = 'sallyport-mcp-token';

/** Below the home folder, or, where it begins with `./`, of the present one. */
export const usualFile: Readonly<Record<McpClient, string>> = {
  claude: './.mcp.json',
  codex: '.codex/config.toml',
  cursor: '.cursor/mcp.json',
  opencode: '.config/opencode/opencode.json',
  vscode: './.vscode/mcp.json',
};

/** What the user does so that the client has the token. */
export const tokenAdvice = (client: McpClient, profile: string): string =>
  client === 'vscode'
    ? `VS Code asks for the token when it connects; \`sally mcp token ${profile}\` makes a new one`
    : `start ${client} with the token in ${tokenVariable}; \`sally mcp token ${profile}\` makes a new one`;

/** `before`: what the file has now. */
export function settingsWith(client: McpClient, server: ServerPlace, before = ''): string {
  return client === 'codex' ? tomlWith(server, before) : jsonWith(client, server, before);
}

type JsonClient = Exclude<McpClient, 'codex'>;

/** Where the servers are in the file. */
const listName: Readonly<Record<JsonClient, string>> = {
  claude: 'mcpServers',
  cursor: 'mcpServers',
  opencode: 'mcp',
  vscode: 'servers',
};

const byCommand: Readonly<Record<JsonClient, (server: ServerCommand) => object>> = {
  claude: (server) => server,
  cursor: (server) => server,
  opencode: ({ command, args }) => ({ type: 'local', command: [command, ...args], enabled: true }),
  vscode: (server) => ({ type: 'stdio', ...server }),
};

const byUrl: Readonly<Record<JsonClient, (server: ServerUrl) => object>> = {
  claude: ({ url }) => ({ type: 'http', url, headers: bearer(`\${${tokenVariable}}`) }),
  cursor: ({ url }) => ({ url, headers: bearer(`\${env:${tokenVariable}}`) }),
  // Without the last word it would look for a place to log in at.
  opencode: ({ url }) => ({
    type: 'remote',
    url,
    enabled: true,
    headers: bearer(`{env:${tokenVariable}}`),
    oauth: false,
  }),
  vscode: ({ url }) => ({ type: 'http', url, headers: bearer(`\${input:${tokenInput}}`) }),
};

const bearer = (token: string): object => ({ Authorization: `Bearer ${token}` });

function jsonWith(client: JsonClient, server: ServerPlace, before: string): string {
  const settings = before.trim() === '' ? {} : parsed(before);
  const list = listName[client];
  const servers = settings[list] ?? {};
  if (!isRecord(servers)) throw unreadable(`${list} is no object`);
  const own = 'url' in server ? byUrl[client](server) : byCommand[client](server);
  const after = {
    ...settings,
    ...(client === 'vscode' && 'url' in server ? { inputs: inputsWith(settings['inputs'] ?? []) } : {}),
    [list]: { ...servers, [serverName]: own },
  };
  return `${JSON.stringify(after, null, 2)}\n`;
}

function inputsWith(inputs: unknown): readonly unknown[] {
  if (!Array.isArray(inputs)) throw unreadable('inputs is no list');
  const others = inputs.filter((input) => !isRecord(input) || input['id'] !== tokenInput);
  const own = { type: 'promptString', id: tokenInput, description: 'Token of Sallyport', password: true };
  return [...others, own];
}

function parsed(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw unreadable(cause instanceof Error ? cause.message : String(cause));
  }
  if (!isRecord(value)) throw unreadable('it is no object');
  return value;
}

/** A table ends where the next one begins; the words of a JSON string are those of TOML. */
function tomlWith(server: ServerPlace, before: string): string {
  const table = [
    `[mcp_servers.${serverName}]`,
    ...('url' in server
      ? [`url = ${JSON.stringify(server.url)}`, `bearer_token_env_var = ${JSON.stringify(tokenVariable)}`]
      : [
          `command = ${JSON.stringify(server.command)}`,
          `args = [${server.args.map((arg) => JSON.stringify(arg)).join(', ')}]`,
        ]),
  ];
  const lines = before.split('\n');
  const first = lines.findIndex((line) => line.trim() === table[0]);
  if (first === -1) return `${before.trimEnd()}${before.trim() === '' ? '' : '\n\n'}${table.join('\n')}\n`;
  const length = lines.slice(first + 1).findIndex((line) => line.trimStart().startsWith('['));
  const rest = length === -1 ? [] : ['', ...lines.slice(first + 1 + length)];
  return `${[...lines.slice(0, first), ...table, ...rest].join('\n').trimEnd()}\n`;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const unreadable = (why: string): SallyportError =>
  new SallyportError('usage', `the client's settings cannot be read: ${why}`, {
    advice: 'Mend the file, or leave out --write and put the settings there yourself.',
  });
