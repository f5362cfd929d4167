/**
 * Runs git on the host. No hook, file system monitor, credential helper, pager or network transport of any repository is obeyed,
 * whatever its configuration says, and nothing is asked at a terminal.
 *
 * `hostile` is for commands that read what came out of a sandbox: they have bounds of time, memory and output.
 */

import { spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { SallyportError } from '../../protocol/errors.ts';

export interface GitPlace {
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** Where only files of this machine are read; else no transport at all is allowed. */
  readonly readsFiles?: true;
  /** Without the settings of the user and of the machine: a repository that is ours. */
  readonly isOurs?: true;
  readonly hostile?: true;
}

export interface GitEnd {
  readonly code: number;
  readonly stdout: Buffer;
  readonly stderr: string;
}

const harmless = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.sshCommand=false',
  'core.alternateRefsCommand=true',
  'credential.helper=',
  'gc.auto=0',
  'maintenance.auto=false',
  'submodule.recurse=false',
  'fetch.recurseSubmodules=false',
  'commit.gpgSign=false',
].flatMap((setting) => ['-c', setting]);

const mostOutputBytes = 64 * 2 ** 20;
const mostWords = 4096;
/** Of one command that reads hostile objects. */
const hostileSeconds = 120;
const hostileMemoryKib = 4 * 2 ** 20;

export async function runGit(
  place: GitPlace,
  args: readonly string[],
  input?: Buffer | Readable,
): Promise<GitEnd> {
  const own = place.isOurs === true ? { GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' } : {};
  const env = {
    ...place.environment,
    ...own,
    // Stronger than any `protocol.*.allow` of a configuration.
    GIT_ALLOW_PROTOCOL: place.readsFiles === true ? 'file' : 'none',
    GIT_NO_LAZY_FETCH: '1',
    GIT_LFS_SKIP_SMUDGE: '1',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_TERMINAL_PROMPT: '0',
    GIT_PAGER: 'cat',
    LC_ALL: 'C',
  };
  const all = ['-C', place.folder, ...harmless, ...args];
  const limits = `ulimit -t ${hostileSeconds} && ulimit -v ${hostileMemoryKib} && exec git "$@"`;
  const signal = place.signal === undefined ? {} : { signal: place.signal };
  const child =
    place.hostile === true
      ? spawn('/bin/sh', ['-c', limits, 'git', ...all], { env, stdio: 'pipe', ...signal })
      : spawn('git', all, { env, stdio: 'pipe', ...signal });
  const ended = new Promise<number>((resolve, reject) => {
    child.once('error', (cause) => {
      if (child.pid === undefined)
        reject(new SallyportError('git_failed', `git could not be started: ${cause.message}`, { cause }));
      // Until it has ended it may write to what its caller is about to remove.
      else child.once('exit', () => reject(new SallyportError('cancelled', 'git was ended', { cause })));
    });
    child.once('close', (code) => resolve(code ?? -1));
  });
  // One that ends early does not read all of it, and says why.
  child.stdin.on('error', () => {});
  if (input === undefined || Buffer.isBuffer(input)) child.stdin.end(input ?? '');
  else {
    input.once('error', () => child.kill('SIGKILL'));
    input.pipe(child.stdin);
  }
  const [code, stdout, stderr] = await Promise.all([
    ended,
    upTo(child.stdout, mostOutputBytes, () => child.kill('SIGKILL')),
    firstWords(child.stderr),
  ]);
  return { code, stdout, stderr };
}

export async function mustGit(
  place: GitPlace,
  args: readonly string[],
  input?: Buffer | Readable,
): Promise<Buffer> {
  const { code, stdout, stderr } = await runGit(place, args, input);
  if (code === 0) return stdout;
  throw gitFailed(place.folder, args, stderr);
}

export function gitFailed(folder: string, [what]: readonly string[], stderr: string): SallyportError {
  const reason = reasonOf(stderr);
  return new SallyportError('git_failed', `git ${what} failed in ${folder}: ${reason}`, {
    details: { folder },
  });
}

/** The line that says why; what git suggests to do comes after it. */
export function reasonOf(stderr: string): string {
  const lines = stderr.trim().split('\n');
  const line = lines.find((one) => /^(fatal|error): /.test(one)) ?? lines.at(-1) ?? '';
  const plain = line.replace(/\p{C}+/gu, ' ');
  return plain === '' ? 'it was ended, or ran into its limits' : plain;
}

/** The content of each, in their order; all of it is in memory at once. */
export async function readBlobs(place: GitPlace, objects: readonly string[]): Promise<readonly Buffer[]> {
  if (objects.length === 0) return [];
  const wanted = Buffer.from(objects.map((object) => `${object}\n`).join(''));
  const answer = await mustGit(place, ['cat-file', '--batch'], wanted);
  const contents: Buffer[] = [];
  for (let at = 0; at < answer.length; ) {
    const end = answer.indexOf('\n', at);
    const [, kind, size] = answer.toString('latin1', at, end).split(' ');
    if (kind !== 'blob') throw gitFailed(place.folder, ['cat-file'], 'an object is missing or is no file');
    contents.push(answer.subarray(end + 1, end + 1 + Number(size)));
    at = end + 2 + Number(size);
  }
  return contents;
}

export const lineOf = (bytes: Buffer): string => bytes.toString('latin1').replace(/\n$/, '');

export const zeroSeparated = (bytes: Buffer): readonly string[] =>
  bytes.toString('latin1').split('\0').slice(0, -1);

async function upTo(stream: Readable, most: number, exceeded: () => void): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= most) chunks.push(chunk);
    else exceeded();
  }
  return Buffer.concat(chunks);
}

async function firstWords(stream: Readable): Promise<string> {
  let words = '';
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    if (words.length < mostWords) words += chunk.toString('utf8');
  }
  return words.slice(0, mostWords);
}
