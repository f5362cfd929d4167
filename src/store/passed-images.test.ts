import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PassedImages } from './passed-images.ts';

describe('the images that passed', () => {
  let folder: string;
  let path: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sallyport-passed-'));
    path = join(folder, 'passed-images');
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('[G10] are known to the next daemon, each written once', () => {
    const images = new PassedImages(path, 1);
    expect(images.has('sha256:a')).toBe(false);
    images.add('sha256:a');
    images.add('sha256:a');
    expect(new PassedImages(path, 1).has('sha256:a')).toBe(true);
    expect(readFileSync(path, 'utf8')).toBe('sha256:a v1\n');
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it('[G9] of another version of the marker count for nothing', () => {
    new PassedImages(path, 1).add('sha256:a');
    expect(new PassedImages(path, 2).has('sha256:a')).toBe(false);
  });

  it('are a cache: a file that cannot be read or written is no failure', () => {
    const images = new PassedImages(join(folder, 'missing', 'passed-images'), 1);
    images.add('sha256:a');
    expect(images.has('sha256:a')).toBe(true);
    writeFileSync(path, 'sha256:a v1\nsha256:half');
    expect(new PassedImages(path, 1).has('sha256:a')).toBe(true);
    expect(new PassedImages(path, 1).has('sha256:half')).toBe(false);
  });
});
