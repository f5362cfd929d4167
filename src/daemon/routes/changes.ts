/** What changed in a copied workspace, what was there before, and what was brought back. */

import { z } from 'zod';
import { isTreePath, mostTreeEntries } from '../../porter/tree-records.ts';
import { linesContentType } from '../../protocol/client-header.ts';
import { SallyportError } from '../../protocol/errors.ts';
import { broughtBack } from '../../protocol/requests.ts';
import { type ChangeView, changesView } from '../../protocol/views.ts';
import type { Mark } from '../../sandboxes/baseline.ts';
import type { BroughtBack, WorkspaceChange } from '../../sandboxes/workspace-changes.ts';
import { pathOf, showBytes } from '../file-views.ts';
import { readJsonLines } from '../json-lines.ts';
import { treePath } from '../query.ts';
import { json, type Route, route } from '../route.ts';

const base = '/v1/sandboxes/:sandbox/changes';

export const changeRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: base,
    summary:
      'What is different in a copied workspace from what was copied in; starts a sandbox that is stopped',
    answers: { 200: changesView },
    handle: async ({ sandbox, signal }) => {
      const { folder, changes } = await sandbox().changes(signal);
      return json({ source: folder.source, target: folder.target, changes: changes.map(viewOf) });
    },
  }),
  route({
    method: 'GET',
    path: `${base}/base`,
    summary: 'The content of a file as it was copied in',
    query: { path: treePath('In the workspace.') },
    answers: { 200: { contentType: 'application/octet-stream', description: 'The bytes' } },
    handle: async ({ sandbox, query }) => {
      const content = await sandbox().baseContent(query.path);
      return { type: 'bytes', contentType: 'application/octet-stream', chunks: only(content), eager: true };
    },
  }),
  route({
    method: 'PUT',
    path: `${base}/brought-back`,
    summary: 'These paths, one a line, are on the host now as they were inside: they count as copied in',
    streamBody: linesContentType,
    answers: { 200: z.strictObject({ paths: z.number().int() }) },
    handle: async ({ sandbox, stream }) => {
      const box = sandbox();
      const news: BroughtBack[] = [];
      for await (const lines of readJsonLines(stream, broughtBack)) {
        if (news.length + lines.length > mostTreeEntries) throw tooMany();
        news.push(...lines.map(readBroughtBack));
      }
      await box.moveBaseline(news);
      return json({ paths: news.length });
    },
  }),
];

const tooMany = (): SallyportError =>
  new SallyportError('request_too_large', `there are more than ${mostTreeEntries} paths`, {
    details: { limit: mostTreeEntries },
  });

async function* only(content: Buffer): AsyncGenerator<Buffer> {
  yield content;
}

function viewOf({ path, before, after }: WorkspaceChange): ChangeView {
  return {
    ...showBytes('path', path),
    change: before === undefined ? 'added' : after === undefined ? 'removed' : 'changed',
    ...(before === undefined ? {} : { before: sideOf(before, true) }),
    ...(after === undefined ? {} : { after: sideOf(after, false) }),
  };
}

function sideOf(mark: Mark, isBase: boolean): NonNullable<ChangeView['before']> {
  switch (mark.kind) {
    case 'file': {
      const { mode, sizeBytes: size, sha256, keptAt } = mark;
      return { kind: 'file', mode, size, sha256, ...(isBase ? { kept: keptAt !== undefined } : {}) };
    }
    case 'large':
      return { kind: 'file', mode: mark.mode, size: mark.sizeBytes, compared: false };
    case 'link':
      return { kind: 'symlink', ...showBytes('link_target', mark.target) };
    case 'directory':
      return { kind: 'directory' };
    case 'other':
      return { kind: 'unknown' };
  }
}

function readBroughtBack(given: z.output<typeof broughtBack>): BroughtBack {
  const path = pathOf(given.path);
  if (!isTreePath(path)) {
    throw new SallyportError('request_invalid', 'a path of the body is not inside the workspace', {
      details: { field: 'body.path' },
    });
  }
  switch (given.kind) {
    case 'absent':
      return { path };
    case 'directory':
      return { path, mark: { kind: 'directory' } };
    case 'symlink':
      return { path, mark: { kind: 'link', target: pathOf(given.target) } };
    case 'file': {
      const { mode, size: sizeBytes, sha256 } = given;
      return { path, mark: { kind: 'file', mode, sizeBytes, sha256 } };
    }
  }
}
