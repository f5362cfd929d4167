/**
 * Reads `latest.json` of a release, as `npm run release` makes it, from a URL or a folder. It sends one plain GET.
 *
 * SECURITY: the answer is untrusted text. It is bounded in time and size, checked against a schema, and no redirect is
 * followed. Nothing of it is ever run; what is shown of it has no control characters.
 */

import { createReadStream } from 'node:fs';
import { get as getByHttp, type IncomingMessage } from 'node:http';
import { get as getByHttps } from 'node:https';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { isVersion } from '../../lib/versions.ts';
import { isSallyportError, SallyportError } from '../../protocol/errors.ts';

const timeoutMs = 10_000;
const mostBytes = 2 ** 20;

const releaseFile = z.object({
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});

const latestSchema = z.object({
  version: z.string().refine(isVersion, 'is not a version'),
  date: z.iso.date(),
  files: z.array(releaseFile).max(100),
  changelog: z.string(),
});
export type LatestRelease = z.infer<typeof latestSchema>;

export interface ReleasePlace {
  /** Of a file of the release, without a password that the URL may have. */
  readonly locate: (name: string) => string;
  readonly isUrl: boolean;
  /** Plain HTTP to another machine: the network can change the answer. */
  readonly isOpen: boolean;
  readonly read: (name: string, signal: AbortSignal) => Promise<string>;
}

export async function readLatest(place: ReleasePlace, signal: AbortSignal): Promise<LatestRelease> {
  const where = place.locate('latest.json');
  const text = await place.read('latest.json', signal);
  const parsed = latestSchema.safeParse(parse(text, where));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw unusable(where, `${issue?.path.join('.')}: ${issue?.message}`);
}

/** `text`: SALLYPORT_RELEASES. */
export function releasePlace(text: string): ReleasePlace {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) {
    const locate = (name: string): string => join(resolve(text), name);
    return {
      locate,
      isUrl: false,
      isOpen: false,
      read: (name, signal) =>
        within(locate(name), signal, (limit) =>
          bounded(createReadStream(locate(name), { signal: limit }), locate(name)),
        ),
    };
  }
  const base = URL.canParse(text) ? new URL(text) : undefined;
  if (base === undefined || !['https:', 'http:'].includes(base.protocol)) {
    throw new SallyportError(
      'config_invalid',
      'SALLYPORT_RELEASES is neither a URL of http or https nor a folder',
      {
        advice: 'Set it to https://host/path, or to the path of a folder.',
      },
    );
  }
  const address = (name: string): URL => {
    const url = new URL(base);
    url.pathname = `${url.pathname.replace(/\/+$/, '')}/${name}`;
    return url;
  };
  const locate = (name: string): string => {
    const url = address(name);
    url.username = '';
    url.password = '';
    return url.href;
  };
  const isLocal = ['localhost', '127.0.0.1', '[::1]'].includes(base.hostname);
  return {
    locate,
    isUrl: true,
    isOpen: base.protocol === 'http:' && !isLocal,
    read: (name, signal) =>
      within(locate(name), signal, (limit) => download(address(name), locate(name), limit)),
  };
}

async function download(url: URL, where: string, signal: AbortSignal): Promise<string> {
  const get = url.protocol === 'https:' ? getByHttps : getByHttp;
  const answer = await new Promise<IncomingMessage>((done, failed) => {
    get(url, { signal, agent: false, headers: { accept: 'application/json' } }, done).once('error', failed);
  });
  const { statusCode = 0 } = answer;
  if (statusCode === 200) return await bounded(answer, where);
  answer.destroy();
  const isRedirect = statusCode >= 300 && statusCode < 400;
  throw unusable(
    where,
    isRedirect ? `a redirect (${statusCode}), which is not followed` : `status ${statusCode}`,
  );
}

async function bounded(content: AsyncIterable<Buffer>, where: string): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of content) {
    length += chunk.length;
    if (length > mostBytes) throw unusable(where, `more than ${mostBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** A time limit, and errors that say what was read. */
async function within(
  where: string,
  signal: AbortSignal,
  read: (limit: AbortSignal) => Promise<string>,
): Promise<string> {
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    return await read(AbortSignal.any([signal, timeout]));
  } catch (cause) {
    if (signal.aborted) throw signal.reason;
    if (isSallyportError(cause)) throw cause;
    const late = `no whole answer within ${timeoutMs / 1000} s`;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new SallyportError(
      'release_unreachable',
      `${where} could not be read: ${timeout.aborted ? late : reason}`,
      { details: { where }, cause },
    );
  }
}

function parse(text: string, where: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw unusable(where, 'not JSON');
  }
}

const unusable = (where: string, what: string): SallyportError =>
  new SallyportError('release_invalid', `${where} is not the description of a release: ${what}`, {
    details: { where },
  });
