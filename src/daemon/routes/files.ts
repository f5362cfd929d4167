/** Files inside a sandbox. Content and trees are streams with back-pressure both ways; paths are bytes. */

import { z } from 'zod';
import type { Files } from '../../porter/files.ts';
import { treeContentType } from '../../protocol/client-header.ts';
import { chmodBody, mkdirBody, removeFileBody, renameBody, symlinkBody } from '../../protocol/requests.ts';
import { entryView, statView, type WatchView } from '../../protocol/views.ts';
import { listEntries, pathOf, showBytes, statOf, viewOf } from '../file-views.ts';
import { choice, flag, path, whole } from '../query.ts';
import { json, type Reply, type Route, route } from '../route.ts';
import { readRecords } from '../tree-body.ts';

const base = '/v1/sandboxes/:sandbox/files';
const insidePath = path('Inside the sandbox.');

export const fileRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: `${base}/stat`,
    summary: 'What a path names',
    query: { path: insidePath, follow: flag('Of what a link leads to; else of the link itself.', true) },
    answers: { 200: statView },
    handle: async ({ sandbox, query, signal }) => {
      const files = await sandbox().files();
      return json(await statOf(files, query.path, query.follow, signal));
    },
  }),
  route({
    method: 'GET',
    path: `${base}/list`,
    summary: 'What is in a directory, in the order of the names',
    query: { path: insidePath, details: flag('With size, mode, owner and time of each.', false) },
    answers: { 200: z.strictObject({ entries: z.array(entryView) }) },
    handle: async ({ sandbox, query, signal }) => {
      const files = await sandbox().files();
      const chunks = listEntries(files, query.path, query.details, signal);
      return { type: 'bytes', contentType: 'application/json; charset=utf-8', chunks, eager: true };
    },
  }),
  route({
    method: 'GET',
    path: `${base}/content`,
    summary: 'The content of a file, or a part of it',
    query: {
      path: insidePath,
      offset: whole('Begin here.'),
      length: whole('At most so many bytes.'),
      holes: flag('As extents (docs/protocol.md, section 6), without the zeros of holes.', false),
    },
    answers: {
      200: { contentType: 'application/octet-stream', description: 'The bytes, or extents of them' },
    },
    handle: async ({ sandbox, query, signal }) => {
      const files = await sandbox().files();
      const { offset, length, holes } = query;
      const options = {
        signal,
        ...(offset === undefined ? {} : { offset }),
        ...(length === undefined ? {} : { length }),
      };
      const content = holes ? files.readExtents(query.path, options) : files.read(query.path, options);
      return bytes('application/octet-stream', content);
    },
  }),
  route({
    method: 'PUT',
    path: `${base}/content`,
    summary: 'Writes a file: by `replace` and `new` it is there only when all of it is',
    query: {
      path: insidePath,
      mode: whole('Permission bits as a decimal number; else those that are there, or 0644.', {
        maximum: 0o777,
      }),
      how: choice(
        'What happens to a file that is there.',
        ['replace', 'truncate', 'append', 'new'],
        'replace',
      ),
    },
    streamBody: '*/*',
    answers: { 200: statView },
    handle: async ({ sandbox, query, stream, signal }) => {
      const files = await sandbox().files();
      const { mode, how } = query;
      // Giving up early must not cut the connection: the refusal has to arrive.
      const content = stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
      const options = { how, signal, ...(mode === undefined ? {} : { mode }) };
      return json(viewOf(query.path, await files.write(query.path, content, options)));
    },
  }),
  act('mkdir', 'Makes a directory', mkdirBody, async (files, { path, mode, parents }, signal) => {
    await files.mkdir(pathOf(path), { parents, signal, ...(mode === undefined ? {} : { mode }) });
  }),
  act(
    'remove',
    'Removes a file, or a directory with all that is in it',
    removeFileBody,
    async (files, body, signal) => {
      await files.remove(pathOf(body.path), { recursive: body.recursive, signal });
    },
  ),
  act('rename', 'Renames what is there', renameBody, async (files, { from, to }, signal) => {
    await files.rename(pathOf(from), pathOf(to), { signal });
  }),
  act('symlink', 'Makes a symbolic link', symlinkBody, async (files, { target, path }, signal) => {
    await files.symlink(pathOf(target), pathOf(path), { signal });
  }),
  act('chmod', 'Sets the permission bits', chmodBody, async (files, { path, mode }, signal) => {
    await files.chmod(pathOf(path), mode, { signal });
  }),
  route({
    method: 'GET',
    path: `${base}/watch`,
    summary: 'What changes below a path, as server-sent events; the first is `ready`',
    query: { path: insidePath, recursive: flag('Also in the directories below.', false) },
    answers: { 200: { contentType: 'text/event-stream', description: 'Each data line is a change' } },
    handle: async ({ sandbox, query, signal }) => {
      const files = await sandbox().files();
      const changes = files.watch(query.path, { recursive: query.recursive, signal });
      return { type: 'events', messages: watchMessages(changes) };
    },
  }),
  route({
    method: 'GET',
    path: `${base}/tree`,
    summary: 'Everything below a directory as one stream of records',
    query: { path: insidePath },
    answers: {
      200: { contentType: treeContentType, description: 'Tree records (docs/protocol.md, section 6)' },
    },
    handle: async ({ sandbox, query, signal }) => {
      const files = await sandbox().files();
      return bytes(treeContentType, files.getRecords(query.path, { signal }));
    },
  }),
  route({
    method: 'PUT',
    path: `${base}/tree`,
    summary: 'Puts a stream of records into a directory that is there',
    query: { path: insidePath },
    streamBody: treeContentType,
    answers: { 200: z.strictObject({ entries: z.number().int() }) },
    handle: async ({ sandbox, query, stream, signal }) => {
      const files = await sandbox().files();
      return json({ entries: await files.putRecords(query.path, readRecords(stream), { signal }) });
    },
  }),
];

const bytes = (contentType: string, chunks: AsyncIterable<Uint8Array>): Reply => ({
  type: 'bytes',
  contentType,
  chunks,
  eager: true,
});

function act<B extends z.ZodType>(
  verb: string,
  summary: string,
  body: B,
  doIt: (files: Files, body: z.output<B>, signal: AbortSignal) => Promise<void>,
): Route {
  return route({
    method: 'POST',
    path: `${base}/${verb}` as `${typeof base}/verb`,
    summary,
    body,
    answers: { 204: undefined },
    handle: async ({ sandbox, body: asked, signal }) => {
      await doIt(await sandbox().files(), asked, signal);
      return { type: 'empty' };
    },
  });
}

async function* watchMessages(
  changes: ReturnType<Files['watch']>,
): AsyncGenerator<{ readonly data: WatchView }> {
  for await (const { kind, path: changed } of changes)
    yield { data: { kind, ...showBytes('path', changed) } };
}
