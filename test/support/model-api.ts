/**
 * A stand-in for the APIs of models, outside of the sandbox: real clients ask it as they would ask the service, and its scripted
 * answers make them write a file with a tool of their own. It is reached as an upstream proxy, so it needs no port below 1024.
 */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import net, { type AddressInfo, type Server } from 'node:net';
import { text } from 'node:stream/consumers';
import { SandboxAuthority } from '../../src/gate/tls/sandbox-authority.ts';
import { sandboxIdFrom } from '../../src/protocol/ids.ts';

export interface SeenRequest {
  readonly host: string;
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export interface ModelApi {
  /** For `--upstream`. */
  readonly upstream: string;
  /** The certificate that it is to be trusted by, for the daemon. */
  readonly rootPem: string;
  readonly seen: SeenRequest[];
  readonly close: () => Promise<void>;
}

/** What the scripted model does: the file that it has written, and its last words. */
export interface Script {
  readonly file: string;
  readonly content: string;
  readonly last: string;
  /** Awaited before the last words: for tests that do something while an agent runs. */
  readonly meanwhile?: () => Promise<void>;
}

/** The script is asked for at each request. */
export async function startModelApi(script: () => Script): Promise<ModelApi> {
  const authority = SandboxAuthority.create(sandboxIdFrom(Buffer.alloc(10, 7)), new Date());
  const seen: SeenRequest[] = [];
  const open = new Set<net.Socket>();
  const origin = createTlsServer(
    { SNICallback: (name, done) => done(null, authority.contextFor(name)) },
    (request, response) => {
      void answer(request, response, script(), seen).catch((error: unknown) => {
        response.destroy(error instanceof Error ? error : new Error(String(error)));
      });
    },
  );
  const originPort = await listen(origin, open);
  const proxy = createServer((_request, response) => response.writeHead(405).end());
  proxy.on('connect', (_request, client: net.Socket, head: Buffer) => {
    const to = net.connect(originPort, '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      to.write(head);
      client.pipe(to).pipe(client);
    });
    open.add(to);
    for (const [one, other] of [
      [client, to],
      [to, client],
    ] as const)
      one.on('error', () => other.destroy()).on('close', () => other.destroy());
  });
  const port = await listen(proxy, open);
  const close = async (): Promise<void> => {
    for (const socket of open) socket.destroy();
    await Promise.all(
      [origin, proxy].map((server) => new Promise<void>((resolve) => server.close(() => resolve()))),
    );
  };
  return { upstream: `http://127.0.0.1:${port}`, rootPem: authority.certificatePem, seen, close };
}

async function listen(server: Server, open: Set<net.Socket>): Promise<number> {
  server.on('connection', (socket: net.Socket) => {
    open.add(socket);
    socket.on('error', () => {}).on('close', () => open.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  script: Script,
  seen: SeenRequest[],
): Promise<void> {
  const { method = '', url = '', headers } = request;
  const body = await text(request);
  const path = url.split('?')[0] ?? '';
  seen.push({ host: headers.host ?? '', method, path, headers, body });
  if (method === 'POST' && path === '/v1/messages') await messages(response, JSON.parse(body), script);
  else if (method === 'POST' && path === '/v1/messages/count_tokens') json(response, { input_tokens: 9 });
  else if (method === 'POST' && path === '/v1/responses') await responses(response, JSON.parse(body), script);
  else json(response, { type: 'error', error: { type: 'not_found_error', message: 'not here' } }, 404);
}

function json(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

function streamEvents(response: ServerResponse, events: readonly { readonly type: string }[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of events) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  response.end();
}

interface MessagesBody {
  readonly model: string;
  readonly stream?: boolean;
  readonly tools?: readonly { readonly name: string }[];
  readonly messages: readonly { readonly content: unknown }[];
}

/** The tools that write a file, Claude Code's and opencode's, and what they call its path. */
const writers: Readonly<Record<string, string>> = { Write: 'file_path', write: 'filePath' };

/** Of Anthropic: a call of the tool that writes, then words. */
async function messages(response: ServerResponse, body: MessagesBody, script: Script): Promise<void> {
  const hasResult = JSON.stringify(body.messages).includes('"tool_result"');
  const tool = body.tools?.find(({ name }) => Object.hasOwn(writers, name))?.name;
  const canWrite = tool !== undefined;
  if (canWrite && hasResult) await script.meanwhile?.();
  const block =
    canWrite && !hasResult
      ? {
          type: 'tool_use',
          id: 'toolu_01scripted',
          name: tool,
          input: { [writers[tool] ?? '']: script.file, content: script.content },
        }
      : { type: 'text', text: canWrite ? script.last : 'a title' };
  const stop = block.type === 'tool_use' ? 'tool_use' : 'end_turn';
  const usage = { input_tokens: 9, output_tokens: 9 };
  const message = { id: 'msg_01scripted', type: 'message', role: 'assistant', model: body.model };
  if (body.stream !== true) {
    json(response, { ...message, content: [block], stop_reason: stop, stop_sequence: null, usage });
    return;
  }
  const delta =
    block.type === 'tool_use'
      ? { type: 'input_json_delta', partial_json: JSON.stringify(block.input) }
      : { type: 'text_delta', text: block.text };
  const begun = block.type === 'tool_use' ? { ...block, input: {} } : { ...block, text: '' };
  streamEvents(response, [
    {
      type: 'message_start',
      ...{ message: { ...message, content: [], stop_reason: null, stop_sequence: null, usage } },
    },
    { type: 'content_block_start', ...{ index: 0, content_block: begun } },
    { type: 'content_block_delta', ...{ index: 0, delta } },
    { type: 'content_block_stop', ...{ index: 0 } },
    { type: 'message_delta', ...{ delta: { stop_reason: stop, stop_sequence: null }, usage } },
    { type: 'message_stop' },
  ]);
}

interface ResponsesBody {
  readonly input: unknown;
}

/** Of OpenAI: a call of the tool that runs commands, then words. */
async function responses(response: ServerResponse, body: ResponsesBody, script: Script): Promise<void> {
  const hasResult = JSON.stringify(body.input).includes('"custom_tool_call_output"');
  if (hasResult) await script.meanwhile?.();
  const item = hasResult
    ? {
        type: 'message',
        id: 'msg_scripted',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: script.last, annotations: [] }],
      }
    : {
        type: 'custom_tool_call',
        id: 'ctc_scripted',
        call_id: 'call_scripted',
        name: 'exec',
        input: `text(await tools.exec_command(${JSON.stringify({ cmd: shellLine(script) })}))`,
      };
  const usage = {
    input_tokens: 9,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 9,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 18,
  };
  streamEvents(response, [
    { type: 'response.created', ...{ response: { id: 'resp_scripted', status: 'in_progress' } } },
    { type: 'response.output_item.added', ...{ output_index: 0, item } },
    { type: 'response.output_item.done', ...{ output_index: 0, item } },
    {
      type: 'response.completed',
      ...{ response: { id: 'resp_scripted', status: 'completed', output: [item], usage } },
    },
  ]);
}

const shellLine = ({ content, file }: Script): string => `printf %s '${content}' >'${file}'`;
