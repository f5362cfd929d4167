import { mkdir, mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { changedInputs } from './inputs.ts';
import { isForTheImage } from './npm-fetch.ts';
import { provisionVersion } from './provision.ts';
import { readRecipe } from './recipe.ts';
import { readBaseTemplate, readTemplate, type Template, templateNames, templatePlace } from './template.ts';

const read = (name: string): Promise<Template> => readTemplate(templatePlace(name), 'amd64');
const text = ({ files }: Template, name: string): string =>
  files.find((file) => file.name === name)?.content.toString('utf8') ?? '';

describe.each(templateNames)('the template %s', (name) => {
  it('[G9] gets the version of the marker from the code and from nowhere else', async () => {
    const template = await read(name);
    const dockerfile = text(template, 'Dockerfile');
    expect(dockerfile).toMatch(/^ARG PROVISION_VERSION$/m);
    expect(dockerfile).toMatch(/provision\.sh "\$\{PROVISION_VERSION\}" unmarked$/m);
    for (const file of template.files) expect(file.content.toString('utf8')).not.toMatch(/provisioned\.v\d/);
    expect(template.named).toContainEqual({ name: 'provision', digest: String(provisionVersion) });
  });

  it('[G10] never marks itself, and has what it takes to be tried', async () => {
    const template = await read(name);
    expect(text(template, 'Dockerfile')).not.toContain('.provisioned');
    const base = await readBaseTemplate('amd64');
    expect(template.promises.slice(0, base.promises.length)).toEqual(base.promises);
    expect(template.promises.length).toBeGreaterThan(base.promises.length);
  });

  it('[R1] has the packages of the base image and its own, each once', async () => {
    const template = await read(name);
    const base = await readRecipe('base', 'amd64');
    expect(template.packages).toEqual([...new Set(template.packages)]);
    expect(template.packages).toEqual(expect.arrayContaining([...base.packages]));
    expect(template.addsPackages).toBe(true);
  });

  it('[R1] pins its npm packages by hash, and names no place to fetch them from', async () => {
    const { npm, buildArgs } = await read(name);
    if (npm === undefined) return expect(buildArgs).toEqual({});
    const lock = JSON.parse(npm.lock.toString('utf8')) as {
      packages: Record<string, { integrity?: string }>;
    };
    const packages = Object.entries(lock.packages).filter(([path]) => path !== '');
    expect(packages.length).toBeGreaterThan(1);
    for (const [, { integrity }] of packages) expect(integrity).toMatch(/^sha512-/);
    expect(npm.lock.toString('utf8')).not.toContain('resolved');
    expect(buildArgs['AGENT_VERSION']).toMatch(/^\d+\.\d+\.\d+$/);
    expect(buildArgs['NODE_VERSION']).toMatch(/^22\.\d+\.\d+$/);
  });
});

describe('the templates', () => {
  it.each(['claude', 'codex', 'opencode', 'coding'])(
    '[R1] %s has the tools that agents need',
    async (name) => {
      const wanted = ['build-essential', 'fd-find', 'jq', 'openssh-client', 'ripgrep'];
      expect((await read(name)).packages).toEqual(expect.arrayContaining(wanted));
    },
  );

  it('[G8] data has the list of the seed', async () => {
    const python = ['numpy', 'pandas', 'torch', 'sklearn'].map((part) => `python3-${part}`);
    const wanted = ['git', 'nodejs', 'postgresql-client', 'tor', 'ripgrep', ...python];
    expect((await read('data')).packages).toEqual(expect.arrayContaining(wanted));
  });

  it('[G10] [G12] browser installs Chromium as a package, with its system libraries, and keeps it from leaking', async () => {
    const template = await read('browser');
    expect(template.packages).toEqual(expect.arrayContaining(['chromium', 'fonts-liberation']));
    const program = text(template, 'chromium');
    expect(program).toContain("--host-resolver-rules='MAP * ~NOTFOUND , EXCLUDE localhost'");
    expect(program).toContain('--webrtc-ip-handling-policy=disable_non_proxied_udp');
    expect(template.promises).toContain('python3 /opt/sallyport/render-check.py');
  });

  it('are known by name alone', async () => {
    for (const name of ['', 'nothing', '../coding', 'toString']) {
      expect(() => templatePlace(name)).toThrow(expect.objectContaining({ code: 'template_unknown' }));
    }
  });
});

describe('the fingerprint of a template', () => {
  let folder: string;
  const files = { Dockerfile: 'FROM x', 'packages.txt': 'one\n', 'smoke.txt': 'true\n', 'more.txt': 'more' };
  const place = (name = 'made-up') => ({ name, folder });
  const write = async (changes: Readonly<Record<string, string>> = {}): Promise<void> => {
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder);
    for (const [name, content] of Object.entries({ ...files, ...changes }))
      await writeFile(join(folder, name), content);
  };
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sallyport-template-'));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('[R2] is the same whenever and wherever its files were written', async () => {
    await write();
    const first = await readTemplate(place(), 'amd64');
    await write();
    await utimes(join(folder, 'more.txt'), new Date(0), new Date(0));
    expect((await readTemplate(place(), 'amd64')).inputs).toBe(first.inputs);
    expect(first.tag).toBe(first.inputs.slice(0, 12));
  });

  it('[R2] changes with each file, the platform and the name, and says which', async () => {
    await write();
    const before = await readTemplate(place(), 'amd64');
    const seen = [before.inputs, (await readTemplate(place(), 'arm64')).inputs];
    seen.push((await readTemplate(place('other'), 'amd64')).inputs);
    for (const name of [...Object.keys(files), 'new.txt']) {
      await write({ [name]: 'changed\n' });
      const after = await readTemplate(place(), 'amd64');
      seen.push(after.inputs);
      const { added, changed } = changedInputs(before.named, after.named);
      expect([...added, ...changed]).toEqual([`file:${name}`]);
    }
    expect(new Set(seen).size).toBe(seen.length);
  });
});

describe('what npm leaves in its folder', () => {
  it.each([
    ['/x/node_modules/a/index.js', true],
    ['/x/node_modules/.package-lock.json', false],
    ['/x/node_modules/a/.npmrc', false],
    ['/x/.npmrc', false],
    ['/x/node_modules/.bin/a', true],
  ])('%s: %s', (path, goes) => {
    expect(isForTheImage(path)).toBe(goes);
  });
});
