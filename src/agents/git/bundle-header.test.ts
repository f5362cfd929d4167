import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isSallyportError } from '../../protocol/errors.ts';
import { mostHeaderBytes, readBundleHeader } from './bundle-header.ts';

const one = 'a'.repeat(40);
const two = 'b'.repeat(40);
const read = (text: string, format: 'sha1' | 'sha256' = 'sha1') =>
  readBundleHeader(Buffer.from(text, 'utf8'), format);

describe('the head of a bundle', () => {
  it('says what it has, what it needs and where the pack begins', () => {
    const text = `# v2 git bundle\n-${one} a subject\n-${two}\n${two} refs/heads/größe\n${one} HEAD\n\nPACK`;
    expect(read(text)).toEqual({
      bytes: Buffer.byteLength(text) - 4,
      prerequisites: [one, two],
      references: [
        { object: two, name: 'refs/heads/größe' },
        { object: one, name: 'HEAD' },
      ],
    });
    expect(read('# v2 git bundle\n')).toBeUndefined();
  });

  it('takes a version 3 only with the kind of hashes that the repository has', () => {
    const long = 'c'.repeat(64);
    const text = `# v3 git bundle\n@object-format=sha256\n${long} refs/heads/x\n\n`;
    expect(read(text, 'sha256')?.references).toHaveLength(1);
    expect(() => read(text, 'sha1')).toThrow(/not allowed/);
  });

  it.each([
    [
      'a filter, which lets objects be missing',
      `# v3 git bundle\n@filter=blob:none\n${one} refs/heads/x\n\n`,
    ],
    ['a capability in version 2', `# v2 git bundle\n@object-format=sha1\n${one} refs/heads/x\n\n`],
    ['another program’s file', `#!/bin/sh\n\n`],
    ['a reference without a name', `# v2 git bundle\n${one} \n\n`],
    ['a short hash', `# v2 git bundle\nabc refs/heads/x\n\n`],
    ['hashes of another kind', `# v2 git bundle\n${'a'.repeat(64)} refs/heads/x\n\n`],
    ['thousands of references', `# v2 git bundle\n${`${one} refs/heads/x\n`.repeat(2000)}\n`],
    ['a head without end', '# v2 git bundle\n'.padEnd(mostHeaderBytes, 'x')],
  ])('refuses %s', (_, text) => {
    expect(() => read(text)).toThrow(expect.objectContaining({ code: 'commits_refused' }) as Error);
  });

  it('answers to any bytes with a head, with a refusal, or with a wish for more', () => {
    const start = fc.constantFrom('', '# v2 git bundle\n', '# v3 git bundle\n@', `# v2 git bundle\n-${one}`);
    fc.assert(
      fc.property(start, fc.uint8Array({ maxLength: 60 }), (first, rest) => {
        try {
          const bytes = Buffer.concat([Buffer.from(first), rest, Buffer.from('\n\n')]);
          const header = readBundleHeader(bytes, 'sha1');
          return header === undefined || header.bytes > 0;
        } catch (error) {
          return isSallyportError(error, 'commits_refused');
        }
      }),
    );
  });
});
