/**
 * Makes a sandbox and says what takes long meanwhile. Where the base image is missing it is made first, with consent, in
 * this process: the daemon installs nothing.
 */

import { isSallyportError } from '../protocol/errors.ts';
import type { CreateInput } from '../protocol/requests.ts';
import type { SandboxView } from '../protocol/views.ts';
import { followEvents } from '../sdk/events.ts';
import { readCliEnvironment } from './config.ts';
import type { CliContext } from './context.ts';
import { note } from './output.ts';
import { type ProgressLine, progressLine } from './progress-line.ts';
import type { SandboxCalls } from './sandbox-calls.ts';

/** Quicker than that is no long work. */
const patienceMs = 400;

export async function makeSandbox(
  calls: SandboxCalls,
  body: CreateInput,
  context: CliContext,
): Promise<SandboxView> {
  const line = progressLine();
  try {
    return await create(calls, body, line, context);
  } catch (error) {
    if (!isSallyportError(error, 'image_missing') || body.spec?.image !== undefined) throw error;
    await makeBaseImage(line, context);
    return await create(calls, body, line, context);
  } finally {
    line.done();
  }
}

async function create(
  calls: SandboxCalls,
  body: CreateInput,
  line: ProgressLine,
  { signal }: CliContext,
): Promise<SandboxView> {
  const accepted = await calls.create(body, { signal });
  const { id } = accepted;
  const watching = new AbortController();
  const timer = setTimeout(() => void follow(calls, id, line, watching.signal), patienceMs);
  try {
    const ready = accepted.state === 'READY' ? accepted : await calls.ready(id, { signal });
    if (mayHaveNotes(body)) await showNotes(calls, ready);
    return ready;
  } catch (error) {
    // Whoever gave up does not want it any more; one that was there before stays.
    if (signal.aborted && body.reuse !== true) await calls.remove(id, { force: true, wait: false });
    throw error;
  } finally {
    clearTimeout(timer);
    watching.abort();
  }
}

async function follow(
  calls: SandboxCalls,
  sandbox: string,
  line: ProgressLine,
  signal: AbortSignal,
): Promise<void> {
  try {
    for await (const event of followEvents(calls.client, { sandbox, since: 0, signal })) {
      if (event.type !== 'sandbox.progress') continue;
      const { step, message, current } = event;
      line.report({ step, message, ...(current === undefined ? {} : { current }) });
    }
  } catch {
    // Progress is a courtesy: whether the work succeeds is said by its own answer.
  }
}

/** What policy remarks on has to do with what of the host is inside, and with the user. */
function mayHaveNotes({ spec = {} }: CreateInput): boolean {
  const { workspace, mounts, builtin_tools: tools, user } = spec;
  return [workspace, mounts, tools, user].some((field) => field !== undefined);
}

async function showNotes(calls: SandboxCalls, { id, sequence }: SandboxView): Promise<void> {
  const watching = new AbortController();
  for await (const event of followEvents(calls.client, { sandbox: id, since: 0, signal: watching.signal })) {
    if (event.type === 'sandbox.note') note(event.message);
    if (event.sequence >= sequence) watching.abort();
  }
}

async function makeBaseImage(line: ProgressLine, { signal }: CliContext): Promise<void> {
  const [{ makeImageHere }, { askConsent }] = await Promise.all([
    import('../setup/images.ts'),
    import('../setup/ask-consent.ts'),
  ]);
  await makeImageHere('base', {
    progress: line.report,
    consent: async (packages) => {
      line.done();
      const what = `${packages.join(', ')} with apt-get`;
      return await askConsent({ what, agreed: readCliEnvironment().ci, say: note }, signal);
    },
    signal,
  });
}
