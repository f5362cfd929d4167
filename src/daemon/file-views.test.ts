import { expect, test } from 'vitest';
import type { FileStat } from '../porter/stat-record.ts';
import { statView } from '../protocol/views.ts';
import { viewOf } from './file-views.ts';

const stat: FileStat = {
  kind: 'file',
  mode: 0o644,
  sizeBytes: 1,
  mtimeNs: 1_000_000_000_000_000_000n,
  uid: 1,
  gid: 1,
  inode: 1n,
  links: 1,
};
const path = Buffer.from('/x/name');

test('[N5] a file is shown whatever time and size the sandbox says', () => {
  expect(viewOf(path, stat).modified_at).toBe('2001-09-09T01:46:40.000Z');
  for (const mtimeNs of [0n, 2n ** 62n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n]) {
    const view = viewOf(path, { ...stat, mtimeNs, sizeBytes: 2 ** 64, uid: 2 ** 32 - 1 });
    expect(Number.isFinite(Date.parse(view.modified_at)), String(mtimeNs)).toBe(true);
    expect(statView.parse(JSON.parse(JSON.stringify(view)))).toEqual(view);
  }
});

test('[N5] a name is shown as it is, with its bytes where it is no text', () => {
  const hostile = Buffer.from('\u001b[31m\n\r\u202e');
  expect(viewOf(hostile, stat)).toMatchObject({ name: hostile.toString() });
  expect(viewOf(Buffer.from([0xff, 0x0a]), stat)).toMatchObject({ name_base64: '/wo=' });
});
