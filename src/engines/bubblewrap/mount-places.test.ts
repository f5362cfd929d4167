import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { requirePlainPlaces } from './mount-places.ts';

function boxFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-places-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  mkdirSync(join(folder, 'root/home/sally'), { recursive: true });
  return folder;
}

const parts = [{ from: 'root/home/sally', target: '/home/sally', kind: 'directory' as const }];

function look(folder: string, target: string): void {
  requirePlainPlaces({ id: 'bw-x', folder }, parts, [{ source: '/x', target, writable: false }]);
}

describe('[N5] the places of mounts in what a box has written', () => {
  it('are fine where nothing is, where folders are, and where a file is to be covered', () => {
    const folder = boxFolder();
    mkdirSync(join(folder, 'root/home/sally/a/b'), { recursive: true });
    writeFileSync(join(folder, 'root/home/sally/a/file'), '');
    for (const target of [
      '/home/sally/new/deep',
      '/home/sally/a/b',
      '/home/sally/a/file',
      '/home/sally/a/b/c',
    ])
      expect(() => look(folder, target), target).not.toThrow();
  });

  it('are looked at only in the box’s own parts', () => {
    const folder = boxFolder();
    symlinkSync('/etc', join(folder, 'root/home/sallyport'));
    expect(() => look(folder, '/home/sallyport/x')).not.toThrow();
  });

  it.each([
    ['a link at the target', '/home/sally/link', '/home/sally/link'],
    ['a link on the way', '/home/sally/link/x/y', '/home/sally/link'],
    ['a link further down', '/home/sally/a/link/x', '/home/sally/a/link'],
    ['a link that leads nowhere', '/home/sally/lost/x', '/home/sally/lost'],
    ['a link to a folder beside it', '/home/sally/beside/x', '/home/sally/beside'],
    ['a file on the way', '/home/sally/a/file/x', '/home/sally/a/file'],
  ])('are refused with %s', (_what, target, path) => {
    const folder = boxFolder();
    const home = join(folder, 'root/home/sally');
    mkdirSync(join(home, 'a'));
    writeFileSync(join(home, 'a/file'), '');
    symlinkSync('/etc', join(home, 'link'));
    symlinkSync('/etc', join(home, 'a/link'));
    symlinkSync('nowhere', join(home, 'lost'));
    symlinkSync('a', join(home, 'beside'));
    expect(() => look(folder, target)).toThrow(
      expect.objectContaining({ code: 'engine_conflict', details: { box: 'bw-x', path, target } }),
    );
  });
});
