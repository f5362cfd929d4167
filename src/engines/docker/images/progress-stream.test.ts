import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { progressLines } from './progress-stream.ts';

const id = `sha256:${'0123456789abcdef'.repeat(4)}`;

async function failureOf(
  words: string,
  failure: 'image_build_failed' | 'image_pull_failed',
): Promise<unknown> {
  const stream = Readable.from([Buffer.from(`${JSON.stringify({ error: words })}\n`)], { objectMode: false });
  try {
    for await (const _line of progressLines(stream, 'build', failure));
  } catch (error) {
    return error;
  }
  return undefined;
}

describe('a line that says that something failed', () => {
  it.each([
    [`unable to find image "${id}"`, 'build_cache_changed'],
    [`No such image: ${id}`, 'build_cache_changed'],
    [`unknown parent image ID ${id}`, 'build_cache_changed'],
    [
      `failed to get digest ${id}: open /data/imagedb/content/sha256/1: no such file or directory`,
      'build_cache_changed',
    ],
    ['unable to find image "debian:bookworm"', 'image_build_failed'],
    ['pull access denied for sha256, repository does not exist', 'image_build_failed'],
    ["The command '/bin/sh -c exit 3' returned a non-zero code: 3", 'image_build_failed'],
    ['Error processing tar file(exit status 1): write /big: no space left on device', 'disk_full'],
  ])('%s: is %s in a build', async (words, code) => {
    expect(await failureOf(words, 'image_build_failed')).toMatchObject({ code });
  });

  it('is never about the cache of builds in a pull', async () => {
    expect(await failureOf(`No such image: ${id}`, 'image_pull_failed')).toMatchObject({
      code: 'image_pull_failed',
    });
  });
});
