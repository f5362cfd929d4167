import { describe, expect, it } from 'vitest';
import { readDockerfile } from './dockerfile.ts';

const read = (text: string, args: Record<string, string> = {}) =>
  readDockerfile('Dockerfile.sallyport', text, args);
const linesOf = (text: string) => read(text).instructions.map(({ line, name }) => `${line} ${name}`);

describe('a Dockerfile', () => {
  it('[R2] is read with the line of each instruction, over comments and continued lines', () => {
    const text = '# hello\n\nFROM a\nRUN one \\\n  # a comment\n\n  two\nrun three\n';
    expect(linesOf(text)).toEqual(['3 FROM', '4 RUN', '8 RUN']);
    expect(read(text).instructions[1]?.text).toMatch(/^one\s+two$/);
  });

  it('[R2] takes another escape character by its directive, and only before everything else', () => {
    expect(linesOf('# escape=`\nFROM a\nRUN b `\n c \\\nRUN d')).toEqual(['2 FROM', '3 RUN', '5 RUN']);
    expect(linesOf('FROM a\n# escape=`\nRUN b \\\n c')).toEqual(['1 FROM', '3 RUN']);
    expect(() => read('# escape=x\nFROM a')).toThrow(/line 1/);
  });

  it.each([
    ['FROM a', ['a']],
    ['FROM a AS one\nFROM b\nCOPY --from=one / /\nCOPY --from=0 / /', ['a', 'b']],
    ['FROM a AS One\nFROM one', ['a']],
    ['FROM a\nCOPY --from=c:1 / /', ['a', 'c:1']],
    ['FROM scratch', []],
    ['ARG V=1\nFROM a:$V', ['a:1']],
    [`ARG V\nFROM a:\${V:-2}`, ['a:2']],
    ['ARG V=1\nARG B=x:$V\nFROM $B', ['x:1']],
    [`ARG B="a:1"\nFROM \${B}`, ['a:1']],
    [`ARG V=1\nFROM a\${V:+-slim}`, ['a-slim']],
    ['FROM --platform=linux/amd64 a@sha256:00', ['a@sha256:00']],
    ['FROM a\nFROM a', ['a']],
  ])('[R2] is built on what its FROM and COPY --from name: %s', (text, bases) => {
    expect(read(text).bases).toEqual(bases);
  });

  it('[R2] is built on what a build argument says', () => {
    expect(read('ARG B=a\nFROM $B', { B: 'b:2' }).bases).toEqual(['b:2']);
  });

  it.each([
    ['FROM a', false],
    ['FROM a\nCOPY . .', true],
    ['FROM a AS x\nFROM a\nCOPY --from=x / /', false],
    ['FROM a\nADD x y', true],
  ])('[R2] says whether it reads its context: %s', (text, reads) => {
    expect(read(text).readsContext).toBe(reads);
  });

  it.each([
    ['', 1, /no FROM/],
    ['FROM a\nRUM b', 2, /did you mean RUN/],
    ['RUN a\nFROM b', 1, /before the first FROM/],
    ['FROM a\n\nCOPY', 3, /no arguments/],
    ['FROM $V', 1, /names no image/],
    ['FROM a b', 1, /FROM <image>/],
    ['# syntax=docker/dockerfile:1\nFROM a', 1, /BuildKit/],
    ['FROM a\nRUN --mount=type=cache,target=/x true', 2, /RUN --mount needs BuildKit/],
    ['FROM a\nCOPY --link a b', 2, /BuildKit/],
    ['FROM a\nRUN <<EOF\ntrue\nEOF', 2, /here-document/],
    ['FROM a\nCOPY <<"EOF" /x\ntrue\nEOF', 2, /here-document/],
    ['FROM a\nCOPY --from=$X / /', 2, /no variables/],
  ])('is refused with its line: %j', (text, line, words) => {
    expect(() => read(text)).toThrow(expect.objectContaining({ code: 'dockerfile_invalid' }));
    expect(() => read(text)).toThrow(words);
    expect(() => read(text)).toThrow(new RegExp(`line ${line}:`));
  });

  it('keeps what only looks like a here-document', () => {
    const text = 'FROM a\nRUN cat <<<word\nRUN echo "a <<EOF b"\nRUN echo $((1<<2))';
    expect(linesOf(text)).toHaveLength(4);
  });
});
