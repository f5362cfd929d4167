/** Files as the API shows them. */

import type { Files } from '../porter/files.ts';
import type { FileKind, FileStat } from '../porter/stat-record.ts';
import type { FilePathBody } from '../protocol/requests.ts';
import type { EntryView, StatView } from '../protocol/views.ts';

const kinds: Readonly<Record<FileKind, StatView['kind']>> = {
  file: 'file',
  directory: 'directory',
  link: 'symlink',
  other: 'unknown',
};
/** As many operations as porter does at a time, and no more. */
const detailsAtOnce = 16;

export const pathOf = (path: FilePathBody): Buffer =>
  typeof path === 'string' ? Buffer.from(path, 'utf8') : Buffer.from(path.base64, 'base64');

/** Text for people, and base64 beside it where the text does not say it all. */
export function showBytes<K extends string>(
  key: K,
  bytes: Buffer,
): Record<K, string> & Record<string, string> {
  const text = bytes.toString('utf8');
  const exact = Buffer.from(text, 'utf8').equals(bytes);
  return { [key]: text, ...(exact ? {} : { [`${key}_base64`]: bytes.toString('base64') }) } as Record<
    K,
    string
  >;
}

export function viewOf(path: Buffer, stat: FileStat, linkTarget?: Buffer): StatView {
  const name = path.subarray(path.lastIndexOf(0x2f) + 1);
  return {
    kind: kinds[stat.kind],
    ...showBytes('name', name.length === 0 ? path : name),
    size: stat.sizeBytes,
    mode: stat.mode,
    uid: stat.uid,
    gid: stat.gid,
    modified_at: timeOf(stat.mtimeNs),
    ...(linkTarget === undefined ? {} : { link_target: linkTarget.toString('utf8') }),
  };
}

export async function statOf(
  files: Files,
  path: Buffer,
  follow: boolean,
  signal: AbortSignal,
): Promise<StatView> {
  if (follow) return viewOf(path, await files.stat(path, { signal }));
  const stat = await files.lstat(path, { signal });
  const target = stat.kind === 'link' ? await files.readlink(path, { signal }) : undefined;
  return viewOf(path, stat, target);
}

/** The listing as JSON, as it is read: a directory may hold more than fits into memory. */
export async function* listEntries(
  files: Files,
  path: Buffer,
  details: boolean,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  let separator = '{"entries":[';
  let batch: EntryView[] = [];
  const flush = async (): Promise<Buffer> => {
    const views = details
      ? await Promise.all(batch.map((entry) => withDetails(files, path, entry, signal)))
      : batch;
    batch = [];
    const text = views.map((view) => JSON.stringify(view)).join(',');
    const out = Buffer.from(text === '' ? '' : `${separator}${text}`);
    if (text !== '') separator = ',';
    return out;
  };
  for await (const { kind, name } of files.list(path, { signal })) {
    batch.push({ kind: kinds[kind], ...showBytes('name', name) });
    if (batch.length >= (details ? detailsAtOnce : 512)) yield await flush();
  }
  const rest = await flush();
  yield Buffer.concat([rest, Buffer.from(separator === ',' ? ']}' : `${separator}]}`)]);
}

async function withDetails(
  files: Files,
  directory: Buffer,
  entry: EntryView,
  signal: AbortSignal,
): Promise<EntryView> {
  const name =
    entry.name_base64 === undefined ? Buffer.from(entry.name) : Buffer.from(entry.name_base64, 'base64');
  const path = Buffer.concat([directory, Buffer.from('/'), name]);
  // One that was removed or hidden since the listing is still in it, without details.
  return await statOf(files, path, false, signal).catch((error: unknown) => {
    signal.throwIfAborted();
    if (error instanceof Error) return entry;
    throw error;
  });
}

/** Code inside can set any time, also one that no calendar has. */
function timeOf(ns: bigint): string {
  const time = new Date(Number(BigInt.asIntN(64, ns) / 1_000_000n));
  const year = time.getUTCFullYear();
  return year >= 0 && year <= 9999 ? time.toISOString() : new Date(0).toISOString();
}
