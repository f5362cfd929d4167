/** The real server of the daemon, on a socket of its own, in front of `LittleSandboxes`. */

import { request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { Daemon } from '../../src/daemon/daemon.ts';
import { guardSurface } from '../../src/daemon/guard-surface.ts';
import type { ImageSurface } from '../../src/daemon/image-surface.ts';
import { McpEndpoint } from '../../src/daemon/mcp/mcp-endpoint.ts';
import { LaunchFiles } from '../../src/daemon/previews/launch-files.ts';
import { Previews } from '../../src/daemon/previews/previews.ts';
import { SallyportError } from '../../src/protocol/errors.ts';
import { DaemonClient } from '../../src/sdk/client.ts';
import { searchAudit, verifyAudit } from '../../src/store/audit-reader.ts';
import { McpProfileFile } from '../../src/store/mcp-profiles.ts';
import { openSecrets } from '../../src/store/secrets.ts';
import { LittleSandboxes } from './little-sandboxes.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
  readonly json: unknown;
}

export interface AskOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

export interface LittleDaemon {
  readonly sandboxes: LittleSandboxes;
  readonly daemon: Daemon;
  readonly socketPath: string;
  readonly logged: unknown[];
  readonly ask: (method: string, path: string, options?: AskOptions) => Promise<Answer>;
  readonly socket: (path: string, headers?: Record<string, string>) => WebSocket;
}

export const testVersion = '1.2.3';
export const testEngineKey = 'docker-01234567';

export async function littleDaemon(options: { readonly idleMs?: number } = {}): Promise<LittleDaemon> {
  const { sandboxes, folder, close } = await LittleSandboxes.open();
  const logged: unknown[] = [];
  const daemon = new Daemon({
    mcp: new McpEndpoint({
      file: new McpProfileFile(folder),
      client: () => new DaemonClient({ stateDir: folder, startDaemon: false, anyEngine: true }),
      log: { info: () => {}, error: (message, fields) => void logged.push({ message, ...fields }) },
      version: testVersion,
    }),
    previews: new Previews({
      find: () => undefined,
      files: new LaunchFiles(join(folder, 'previews')),
      now: () => Date.now(),
    }),
    sandboxes,
    secrets: openSecrets(folder),
    log: { info: () => {}, error: (message, fields) => void logged.push({ message, ...fields }) },
    version: testVersion,
    owner: 'owner',
    engineKey: testEngineKey,
    engine: { name: 'none', endpoint: 'unix:///none', version: '0' },
    idleMs: options.idleMs ?? Number.POSITIVE_INFINITY,
    images: noImages,
    guard: guardSurface({
      environment: { home: folder, userFile: join(folder, 'config.yaml') },
      approverToken: 'approver',
      tell: (event) => void sandboxes.events.append(event),
      record: (entry) => void logged.push(entry),
      audit: {
        search: (query) => searchAudit(folder, query),
        verify: (head) => verifyAudit(folder, head),
      },
      report: (message, error) => void logged.push({ message, error }),
    }),
    describeBox: async (box) => ({ request: { Image: box.name }, docker_run: `docker run ${box.name}` }),
  });
  const socketPath = join(folder, 'daemon.sock');
  await daemon.listenOnSocket(socketPath);
  onTestFinished(async () => {
    await daemon.stop(true);
    await daemon.stopped;
    await close();
  });
  return {
    sandboxes,
    daemon,
    socketPath,
    logged,
    ask: (method, path, more) => ask({ socketPath }, method, path, more),
    socket: (path, headers = {}) =>
      new WebSocket(`ws://localhost${path}`, { headers, createConnection: () => connect(socketPath) }),
  };
}

const none = (): never => {
  throw new SallyportError('image_missing', 'there are no images here');
};
const noImages: ImageSurface = {
  list: async () => [],
  look: async () => undefined,
  build: none,
  why: async ({ folder }) => ({
    folder,
    reference: 'none',
    is_there: false,
    added: [],
    removed: [],
    changed: [],
  }),
  log: none,
  remove: none,
  prune: async () => [],
};

export function ask(
  where: { readonly socketPath: string } | { readonly host: string; readonly port: number },
  method: string,
  path: string,
  { headers = {}, body }: AskOptions = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const type = body === undefined ? {} : { 'content-type': 'application/json' };
    const outgoing = request({ ...where, method, path, headers: { ...type, ...headers } }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('error', reject);
      answer.on('end', () => {
        const whole = Buffer.concat(chunks);
        const isJson = String(answer.headers['content-type']).startsWith('application/json');
        resolve({
          status: answer.statusCode ?? 0,
          headers: answer.headers,
          body: whole,
          json: isJson ? (JSON.parse(whole.toString('utf8')) as unknown) : undefined,
        });
      });
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}
