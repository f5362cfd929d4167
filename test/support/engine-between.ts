/** Stands between the product and the run's engine, and answers one request itself in words that an engine has for it only now and then. */

import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { parseEndpoint } from '../../src/engines/docker/endpoint/endpoint.ts';
import { EngineConnection } from '../../src/engines/docker/wire/connection.ts';
import { openTransport } from '../../src/engines/docker/wire/transport.ts';
import { testEngine } from './engine.ts';

/** The first build that is asked for fails with these words, as a line of its progress. `builds`: the query of each, in order. */
export async function engineWithFailingBuild(
  words: string,
): Promise<{ readonly connection: EngineConnection; readonly builds: URLSearchParams[] }> {
  const { endpoint, connection } = testEngine();
  const socketPath = endpoint.replace('unix://', '');
  const builds: URLSearchParams[] = [];
  const folder = await mkdtemp(join(tmpdir(), 'sally-engine-between-'));
  const server = createServer((asked, answer) => {
    const { pathname, searchParams } = new URL(asked.url ?? '/', 'http://engine');
    const isBuild = pathname.endsWith('/build');
    if (isBuild) builds.push(searchParams);
    if (isBuild && builds.length === 1) fail(asked, answer, words);
    else passOn(asked, answer, socketPath);
  });
  const own = join(folder, 'docker.sock');
  await new Promise<void>((resolve) => server.listen(own, resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await rm(folder, { recursive: true, force: true });
  });
  const between = `unix://${own}`;
  return {
    connection: new EngineConnection(openTransport(parseEndpoint(between)), between, connection.apiVersion),
    builds,
  };
}

function fail(asked: IncomingMessage, answer: ServerResponse, words: string): void {
  asked.resume();
  asked.once('end', () => {
    answer.writeHead(200, { 'Content-Type': 'application/json' });
    answer.write(`${JSON.stringify({ stream: 'Step 1/2 : FROM something\n' })}\n`);
    answer.end(`${JSON.stringify({ errorDetail: { message: words }, error: words })}\n`);
  });
}

function passOn(asked: IncomingMessage, answer: ServerResponse, socketPath: string): void {
  const { method, url, headers } = asked;
  const call = request({ socketPath, method, path: url, headers }, (answered) => {
    answer.writeHead(answered.statusCode ?? 500, answered.headers);
    answered.pipe(answer);
  });
  call.on('error', () => answer.destroy());
  answer.on('close', () => call.destroy());
  asked.pipe(call);
}
