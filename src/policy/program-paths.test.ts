import { describe, expect, it } from 'vitest';
import type { Found } from './held-paths.ts';
import { programRules, programsOfManifest } from './program-paths.ts';

const programs = (manifest: unknown) => programsOfManifest(JSON.stringify(manifest));

describe('[N5] a package.json that takes the name of the program', () => {
  it.each([
    [{ bin: { sally: './evil.js' } }],
    [{ bin: { 'x/sallyport': './evil.js' } }],
    [{ bin: { 'x\\sally': './evil.js' } }],
    [{ name: '@scope/sally', bin: './evil.js' }],
    [{ name: 'sallyport', bin: './evil.js' }],
    [{ bin: ['./tools/sally'] }],
    [{ directories: { bin: 'tools' } }],
    [{ scripts: { sally: 'node evil.js' } }],
  ])('is found: %j', (manifest) => {
    expect(programs(manifest)).toHaveLength(1);
  });

  it('is found behind a byte order mark, and by an escaped name', () => {
    expect(programsOfManifest('\uFEFF{"bin":{"s\\u0061lly":"./evil.js"}}')).toEqual(['sally: ./evil.js']);
    expect(programsOfManifest('\u00EF\u00BB\u00BF{"bin":{"sally":"x"}}')).toEqual(['sally: x']);
  });

  it.each([
    [{ name: 'app', bin: './app.js', scripts: { test: 'sally run -- npm test' } }],
    [{ bin: { other: 'sally' }, dependencies: { sallyport: '1' } }],
    [{ name: 'sally', scripts: { start: 'x' } }],
    ['sally'],
    [null],
  ])('is not what mentions it: %j', (manifest) => {
    expect(programs(manifest)).toEqual([]);
  });

  it('is none that npm cannot read', () => {
    expect(programsOfManifest('{"bin":{"sally":"x"}')).toEqual([]);
  });
});

describe('[N5] what of the program is held', () => {
  const look = { paths: ['sally', 'tools/node'], nearer: ['node_modules'] };
  const rules = (found: Found, isLeft = false) => programRules(look, found, isLeft);

  it('is what is there, the folder of a link, and a place for what would be loaded first', () => {
    expect(rules({ sally: 'file', 'tools/node': 'symlink' })).toEqual([
      { path: 'sally', missing: 'leave' },
      { path: 'tools', missing: 'leave' },
      { path: 'node_modules', missing: 'folder' },
    ]);
    expect(rules({ node_modules: 'directory' })).toEqual([{ path: 'node_modules', missing: 'leave' }]);
  });

  it.each(['sally', 'node_modules'])('is refused where it is a link at the root: %s', (path) => {
    const refusal = expect.objectContaining({
      code: 'refused_by_policy',
      details: { field: 'workspace.path', path, rule: 'program' },
    });
    expect(() => rules({ [path]: 'symlink' })).toThrow(refusal);
    expect(rules({ [path]: 'symlink' }, true)).not.toContainEqual(expect.objectContaining({ path }));
  });
});
