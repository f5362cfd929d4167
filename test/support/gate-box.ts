/** A sandbox with a gate, servers of the test that it may reach, and a client inside that tries every entrance. */

import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { packageInfo } from '../../src/lib/package-root.ts';
import type { SpecInput } from '../../src/protocol/spec.ts';
import type { Sandbox } from '../../src/sandboxes/sandbox.ts';
import { runInSandbox } from './sandboxes.ts';

export const entrances = ['http', 'connect', 'socks', 'transparent'] as const;

export interface GateAttempt {
  readonly via: (typeof entrances)[number];
  readonly host: string;
  readonly port: number | string;
  /** The Host inside a tunnel, where it is another. */
  readonly inner?: string;
  /** Hexadecimal pieces instead of a request. */
  readonly send?: readonly string[];
  /** Says nothing and waits for the server. */
  readonly silent?: boolean;
  /** Of SOCKS. */
  readonly command?: number;
}

export interface GateResult {
  readonly what: string;
  readonly ms: number;
}

/** One result for each attempt, in their order. */
export async function tryAll(
  sandbox: Sandbox,
  attempts: readonly GateAttempt[],
): Promise<readonly GateResult[]> {
  const script = await readFile(join(packageInfo().root, 'test/support/gate-client.py'));
  const files = await sandbox.files();
  await files.write('/tmp/gate-client.py', script);
  await files.write(
    '/tmp/attempts',
    Buffer.from(attempts.map((each) => `${JSON.stringify(each)}\n`).join('')),
  );
  const { exec, stdout, stderr } = await runInSandbox(sandbox, [
    'sh',
    '-c',
    'python3 /tmp/gate-client.py </tmp/attempts',
  ]);
  if (exec.exit_code !== 0)
    throw new Error(`the client inside failed: ${JSON.stringify(exec)} ${stderr.data}`);
  return stdout.data
    .trim()
    .split('\n')
    .map((line) => ({ ms: Number.parseFloat(line), what: line.slice(line.indexOf(' ') + 1) }));
}

export async function tryOne(sandbox: Sandbox, attempt: GateAttempt): Promise<string> {
  return (await tryAll(sandbox, [attempt]))[0]?.what ?? 'nothing';
}

/**
 * Each some times, beside what is allowed by the same entrance: how much longer a denial takes, the best of both. What another
 * test does to the processor hits both alike.
 */
export async function tryDenials(
  sandbox: Sandbox,
  denials: readonly GateAttempt[],
  allowed: Pick<GateAttempt, 'host' | 'port'>,
): Promise<readonly { readonly attempt: GateAttempt; readonly what: string; readonly addedMs: number }[]> {
  const pairs = denials.flatMap((denied) => [denied, { via: denied.via, ...allowed }]);
  const rounds = 5;
  const all = await tryAll(sandbox, Array.from({ length: rounds }, () => pairs).flat());
  const best = (at: number): number =>
    Math.min(...all.filter((_, index) => index % pairs.length === at).map(({ ms }) => ms));
  return denials.map((attempt, at) => ({
    attempt,
    what: all[2 * at]?.what ?? 'nothing',
    addedMs: best(2 * at) - best(2 * at + 1),
  }));
}

export interface HostServer {
  readonly port: number;
  /** Requests or connections so far. */
  readonly seen: string[];
}

/** Says `hello from the test`, and remembers the Host of each request. */
export async function helloServer(): Promise<HostServer> {
  const seen: string[] = [];
  const server = createHttpServer((request, answer) => {
    seen.push(`${request.method} ${request.headers.host}${request.url}`);
    answer.end('hello from the test');
  });
  return { port: await listen(server), seen };
}

/** Remembers what came first, as hex, and says `reached`; with `greeting` it speaks first. */
export async function rawServer(greeting?: string): Promise<HostServer> {
  const seen: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => sockets.delete(socket));
    if (greeting !== undefined) {
      seen.push('connected');
      socket.write(greeting);
    }
    socket.on('data', (chunk) => {
      seen.push(chunk.toString('hex'));
      if (greeting === undefined) socket.write('reached');
    });
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  return { port: await listen(server), seen };
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    server.close();
    if ('closeAllConnections' in server) (server as { closeAllConnections(): void }).closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

/** A name, and the address of this machine that it leads to, on one port. */
export const openFor = (
  port: number,
  ...hosts: readonly string[]
): NonNullable<SpecInput['egress']>['allow'] => [
  ...hosts.map((host) => `${host}:${port}`),
  `127.0.0.1:${port}`,
];
