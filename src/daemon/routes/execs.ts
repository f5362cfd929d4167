/** Execs: start, wait, read their output, signal. The conversation with one is `exec-stream.ts`. */

import { z } from 'zod';
import { execIdHeader } from '../../protocol/client-header.ts';
import { execBody, killBody, resizeBody, signalBody } from '../../protocol/requests.ts';
import { execResultView, execView } from '../../protocol/views.ts';
import { DaemonStopping } from '../http-server.ts';
import { choice, flag, whole } from '../query.ts';
import { readRawLog } from '../raw-log.ts';
import { json, type Reply, type Route, type RouteContext, route } from '../route.ts';
import type { ExecSurface } from '../surface.ts';

const all = '/v1/sandboxes/:sandbox/execs';
const one = `${all}/:exec` as const;

export const execRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: all,
    summary: 'Starts a command',
    query: {
      wait: flag(
        'Answer with its result when it is over. A client that goes away before that ends a command that is not in the background.',
        false,
      ),
    },
    body: execBody,
    answers: { 200: execResultView, 201: execView },
    handle: async ({ sandbox, query, body, signal, whenOver }) => {
      const box = sandbox();
      // Before it begins: it may be denied something, and be over, before anybody asks.
      const denied = box.view().egress === undefined ? undefined : box.net().denied;
      const exec = await box.exec(body);
      whenOver(exec.hold());
      if (!query.wait) {
        // Whoever starts it in the foreground and does not wait here is about to read its stream.
        if (!body.background) await exec.expectReader();
        const gated = denied === undefined ? {} : { gated: true, denied_before: denied };
        const live = box.view().scanned === true ? { live: true } : {};
        return json({ ...exec.view(), ...gated, ...live }, 201);
      }
      if (!body.background) killWhenGone(exec, body.grace_ms, signal);
      return whenEnded(exec);
    },
  }),
  route({
    method: 'GET',
    path: all,
    summary: 'All commands that are remembered, oldest first',
    answers: { 200: z.strictObject({ execs: z.array(execView) }) },
    handle: ({ sandbox }) =>
      json({
        execs: sandbox()
          .execs()
          .map((exec) => exec.view()),
      }),
  }),
  route({
    method: 'GET',
    path: one,
    summary: 'One command, by its id, the start of its id, or `main`',
    answers: { 200: execView },
    handle: (context) => json(named(context).view()),
  }),
  route({
    method: 'GET',
    path: `${one}/wait`,
    summary: 'The result of a command, when it is over',
    answers: { 200: execResultView },
    handle: (context) => whenEnded(named(context)),
  }),
  route({
    method: 'GET',
    path: `${one}/logs`,
    summary: 'The output of a command as it is kept',
    query: {
      stream: choice(
        'Which of it; `output` is both in the order of arrival.',
        ['stdout', 'stderr', 'output'],
        'output',
      ),
      follow: flag('Go on with what comes until the command is over.', false),
      tail: whole('Only so many bytes from the end of what is there now.'),
    },
    answers: { 200: { contentType: 'application/octet-stream', description: 'The bytes' } },
    handle: async (context) => {
      const { query, signal } = context;
      const exec = named(context);
      const log = await exec.log();
      exec.readerCame();
      const { stream, follow, tail } = query;
      const chunks = readRawLog(log, { stream, follow, signal, ...(tail === undefined ? {} : { tail }) });
      return { type: 'bytes', contentType: 'application/octet-stream', chunks, eager: !follow };
    },
  }),
  act('signal', 'Sends a signal to the main process of a command', signalBody, (exec, { signal }) =>
    exec.signal(signal),
  ),
  act(
    'kill',
    'Ends a command and all its descendants: TERM, then KILL after the grace',
    killBody,
    async (exec, { grace_ms }) => await exec.kill(grace_ms),
  ),
  act('resize', 'Tells the terminal of a command its size', resizeBody, (exec, { rows, columns }) =>
    exec.resize(rows, columns),
  ),
];

function act<B extends z.ZodType>(
  verb: string,
  summary: string,
  body: B,
  doIt: (exec: ExecSurface, body: z.output<B>) => void | Promise<void>,
): Route {
  return route({
    method: 'POST',
    path: `${one}/${verb}` as `${typeof one}/verb`,
    summary,
    body,
    answers: { 200: execView },
    handle: async (context) => {
      const exec = named(context);
      await doIt(exec, context.body);
      return json(exec.view());
    },
  });
}

/** The exec that the path names, with a client that is there until the answer is given. */
function named(context: RouteContext<'sandbox' | 'exec', unknown, unknown>): ExecSurface {
  const exec = context.sandbox().getExec(context.params.exec);
  context.whenOver(exec.hold());
  return exec;
}

/** The id goes first: a client that loses this daemon meanwhile can ask the next one for the result. */
function whenEnded(exec: ExecSurface): Reply {
  exec.readerCame();
  return {
    type: 'late-json',
    headers: { [execIdHeader]: exec.id },
    body: exec.knownResult(),
  };
}

/** Whoever waits for the result has no other handle on the command, so nobody could ever end it. */
function killWhenGone(exec: ExecSurface, graceMs: number, signal: AbortSignal): void {
  const kill = (): void => {
    // Its client is still there and asks the next daemon.
    if (signal.reason instanceof DaemonStopping) return;
    exec.kill(graceMs).catch(() => {});
  };
  if (signal.aborted) kill();
  else signal.addEventListener('abort', kill, { once: true });
  void exec.known.then(() => signal.removeEventListener('abort', kill));
}
