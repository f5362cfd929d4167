import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SallyportError } from '../protocol/errors.ts';
import { specSchema } from '../protocol/spec.ts';
import { userFileSchema } from './user-file.ts';
import { parseConfigText, readConfigFile } from './yaml-file.ts';

const parse = (text: string) => parseConfigText('/p/sallyport.yaml', text, specSchema);

function refusal(text: string, schema = specSchema as Parameters<typeof parseConfigText>[2]): SallyportError {
  try {
    parseConfigText('/p/sallyport.yaml', text, schema);
  } catch (error) {
    if (error instanceof SallyportError) return error;
    throw error;
  }
  throw new Error('was accepted');
}

describe('[A14] a YAML file', () => {
  it('is the spec as it is written', () => {
    expect(parse('image: x\nlimits: {memory: 4g}\n')).toEqual({ image: 'x', limits: { memory: '4g' } });
    expect(parse('')).toEqual({});
    expect(parse('# nothing\n')).toEqual({});
  });

  it.each([
    [
      'an unknown key',
      'image: x\nlimits:\n  memry: 4g\n',
      '3:3: limits.memry is no known field; did you mean memory?',
    ],
    [
      'an unknown key at the top',
      'image: x\n\nimagee: y\n',
      '3:1: imagee is no known field; did you mean image?',
    ],
    [
      'an image that is no reference',
      'images:\n  default: a\n  strict: "a b"\n',
      '3:11: images.strict ("a b") is no image reference',
    ],
    ['a profile without an image', 'images: {usual: x}\n', '1:10: images.usual is no known field'],
    ['a wrong value', 'limits:\n  cpus: two\n', '2:9: limits.cpus ("two") must be a number'],
    [
      'a wrong value in a list',
      'mounts:\n  - source: /a\n    target: b\n',
      '3:13: mounts.0.target ("b") must be absolute',
    ],
    [
      'an unknown key where a text or a map may be',
      'builtin_tools:\n  - git\n  - name: uv\n    mod: shared\n',
      '4:5: builtin_tools.1.mod is no known field; did you mean mode?',
    ],
    [
      'a wrong value where a text or a map may be',
      'builtin_tools:\n  - {name: uv, mode: open}\n',
      '2:22: builtin_tools.0.mode ("open") must be protected or shared',
    ],
    [
      'one tool in two modes',
      'builtin_tools: [uv, {name: uv, mode: shared}]\n',
      '1:21: builtin_tools.1 (a map) names uv as shared, and entry 0 as protected',
    ],
    [
      'an unknown key in a rule',
      'egress: {allow: [{hots: x.com}]}\n',
      'egress.allow.0.hots is no known field; did you mean host?',
    ],
    ['a missing field', 'image: x\nworkspace:\n  mode: copy\n', '3:3: workspace.path is missing'],
    ['a number that must be text', 'envs:\n  PORT: 8080\n', '2:9: envs.PORT must be text, in quotes'],
    [
      'a value through an alias',
      'limits: &l\n  memory: 12\nmounts: *l\n',
      '3:9: mounts (a map) must be a list',
    ],
    ['a key twice', 'image: x\nimage: y\n', '2:1: "image" is there twice'],
    ['a merge key', 'envs: &e {A: "1"}\nlimits:\n  <<: *e\n', '3:3: limits.<< is no known field'],
    ['a tag that makes something else', 'image: !!js/function x\n', '1:8: is no valid YAML'],
    ['broken syntax', 'image: [x\n', ':1: is no valid YAML'],
    ['two documents', 'image: x\n---\nimage: y\n', '2:1: is no valid YAML'],
    ['no map', '- image\n', '1:1: it (a list) must be a map of fields'],
    ['a field without a value', 'limits:\n', '1:8: limits (null) must be a map of fields'],
    ['a host network', 'network: host\n', '1:10: network ("host") must be none'],
  ])('with %s is refused at its line and column', (_, text, expected) => {
    const error = refusal(text);
    expect(error.code).toBe('config_invalid');
    expect(error.message).toContain('/p/sallyport.yaml:');
    expect(error.message).toContain(expected);
  });

  it('tells where the first of many problems is', () => {
    const error = refusal('a: 1\nb: 2\nc: 3\n');
    expect(error.details).toMatchObject({ file: '/p/sallyport.yaml', line: 1, column: 1 });
    expect(error.message.split('\n')).toHaveLength(3);
  });

  it('that is an alias bomb is refused at once', () => {
    const levels = Array.from(
      { length: 12 },
      (_, i) => `l${i + 1}: &l${i + 1} [${Array(10).fill(`*l${i}`).join(', ')}]`,
    );
    const before = process.cpuUsage();
    expect(refusal(`l0: &l0 [x]\n${levels.join('\n')}\n`).message).toContain('aliases');
    expect(process.cpuUsage(before).user).toBeLessThan(1_000_000);
  });

  // Deep nesting does not only take long: at the end of the stack the process is aborted.
  it.each([
    ['brackets', '['.repeat(200_000)],
    ['braces', '{a: '.repeat(60_000)],
    ['closed brackets', `command: ${'['.repeat(250)}${']'.repeat(250)}`],
    ['dashes', '- '.repeat(100_000)],
    ['some dashes', '- '.repeat(500)],
    ['question marks', '? '.repeat(100_000)],
    ['colons', ': '.repeat(100_000)],
    ['indentation', Array.from({ length: 700 }, (_, i) => `${' '.repeat(i)}a:`).join('\n')],
    ['lines', 'k: 1\n'.repeat(50_000)],
    ['keys', Array.from({ length: 19_000 }, (_, i) => `k${i}: 1`).join('\n')],
    ['keys in a line', `{${Array.from({ length: 30_000 }, (_, i) => `k${i}`).join(',')}}`],
    ['equal keys', 'k: 1\n'.repeat(19_000)],
    ['anchors', '&a '.repeat(80_000)],
    ['quotes', '"'.repeat(250_000)],
    ['a cycle', 'workspace: &w\n  path: *w\n'],
  ])('of hostile %s is refused within ten seconds of processor time', (_, text) => {
    const before = process.cpuUsage();
    expect(refusal(text).code).toBe('config_invalid');
    expect(process.cpuUsage(before).user / 1e6).toBeLessThan(10);
  });

  it('[O7] of a project has no image for guarded commands, and that of the user is checked', () => {
    expect(refusal('\nguard: {image: x}\n').message).toContain(':2:1: guard is no known field');
    const wrong = refusal('guard:\n  image: "a b"\n', userFileSchema);
    expect(wrong.code).toBe('config_invalid');
    expect(wrong.message).toContain(':2:10: guard.image ("a b") is no image reference');
  });

  it('of the user has no fields of a project', () => {
    for (const field of ['name: x', 'workspace: {path: .}', 'command: [x]', 'workdir: /x']) {
      expect(refusal(`${field}\n`, userFileSchema).message).toContain('is no known field');
    }
  });
});

describe('reading a configuration file', () => {
  let folder = '';
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sallyport-yaml-'));
  });
  afterAll(async () => await rm(folder, { recursive: true }));

  it('tells absent from unusable', async () => {
    expect(await readConfigFile(join(folder, 'none'))).toBeUndefined();
    expect(await readConfigFile(join(folder, 'none', 'below'))).toBeUndefined();
    await mkdir(join(folder, 'dir'));
    await expect(readConfigFile(join(folder, 'dir'))).rejects.toThrow(/no regular file|cannot be opened/);
    await writeFile(join(folder, 'large'), Buffer.alloc(256 * 1024 + 1, 0x20));
    await expect(readConfigFile(join(folder, 'large'))).rejects.toThrow('larger than 256 KiB');
    await writeFile(join(folder, 'latin'), Buffer.from([0x61, 0xff]));
    await expect(readConfigFile(join(folder, 'latin'))).rejects.toThrow('no UTF-8');
    await writeFile(join(folder, 'good'), 'image: x\n');
    expect(await readConfigFile(join(folder, 'good'))).toBe('image: x\n');
  });

  it('does not wait for a device or a pipe', async () => {
    await expect(readConfigFile('/dev/zero')).rejects.toThrow('no regular file');
  });
});
