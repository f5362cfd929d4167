/**
 * The image of an agent as `sally agent` makes it: on first use, anew with `--rebuild`, and not at all where it breaks its
 * promises. The package is a copy of this one, in which a template is small enough to be made in seconds.
 */

import { randomBytes } from 'node:crypto';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dockerImageEngine } from '../../src/engines/docker/image-engine.ts';
import { ownerId } from '../../src/lib/owner.ts';
import { packageInfo } from '../../src/lib/package-root.ts';
import type { SandboxView } from '../../src/protocol/views.ts';
import { repository as gitRepository } from '../support/agent-repository.ts';
import { newFolder, sally } from '../support/cli.ts';
import { testEngine } from '../support/engine.ts';
import { removeOwned } from '../support/owned-objects.ts';
import { fullSizes, when } from '../support/selection.ts';

const { connection } = testEngine();
const engine = dockerImageEngine(connection);

/** Of the package's own names, because only those are templates; its tag is of this copy. */
const template = 'coding';
const repository = `sallyport-${template}`;

const dockerfile = `ARG BASE
FROM \${BASE}
USER root
ARG PROVISION_VERSION
ARG FRESHNESS=any
COPY packages.txt smoke.txt provision.sh dpkg-excludes small-agent /opt/sallyport/
RUN install -m 755 /opt/sallyport/small-agent /usr/local/bin/small-agent && cat /proc/sys/kernel/random/uuid >/opt/sallyport/made
RUN sh /opt/sallyport/provision.sh "\${PROVISION_VERSION}" unmarked
USER sally
`;
/** Which making of the image it is in. */
const program = '#!/bin/sh\necho "made:$(cat /opt/sallyport/made)"\n';
const promise = `small-agent | grep -q made: # ${randomBytes(8).toString('hex')}`;

let root: string;
let env: Record<string, string>;
let latest: string | undefined;
const made = new Set<string>();

beforeAll(async () => {
  const here = packageInfo().root;
  root = await mkdtemp(join(tmpdir(), 'sallyport-package-'));
  for (const part of ['package.json', 'dist', 'images', 'agents'])
    await cp(join(here, part), join(root, part), { recursive: true });
  for (const part of ['node_modules', 'porter']) await symlink(join(here, part), join(root, part));
  const folder = join(root, 'agents', template);
  await rm(folder, { recursive: true });
  await mkdir(folder);
  const files = {
    Dockerfile: dockerfile,
    'packages.txt': '',
    'smoke.txt': `${promise}\n`,
    'small-agent': program,
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  const state = join(root, 'state');
  const definition = join(root, 'config/sallyport/agents/small');
  await mkdir(definition, { recursive: true });
  await writeFile(
    join(definition, 'agent.yaml'),
    `command: [small-agent]\nheadless: ['{prompt}']\ntemplate: ${template}\n`,
  );
  env = { SALLYPORT_STATE_DIR: state, XDG_CONFIG_HOME: join(root, 'config') };
  latest = (await engine.find(`${repository}:latest`))?.id;
});
afterAll(async () => {
  await run(['daemon', 'stop'], root);
  await removeOwned(connection, ownerId(process.getuid?.() ?? -1, join(root, 'state')));
  for (const reference of made) await engine.remove(reference);
  // What the name stood for before, if anything: an image of the real template.
  if (latest === undefined) await engine.remove(`${repository}:latest`);
  else await engine.tag(latest, repository, 'latest');
  await rm(root, { recursive: true, force: true });
});

const run = (args: readonly string[], cwd: string) =>
  sally(args, { env, cwd, command: [process.execPath, '--', join(root, 'dist/cli/sally.cjs')] });

async function boxOf(folder: string): Promise<SandboxView | undefined> {
  const { stdout } = await run(['agent', 'ls', '--json'], folder);
  const { sandboxes } = JSON.parse(stdout) as { sandboxes: readonly SandboxView[] };
  return sandboxes.find(({ workspace }) => workspace?.path === folder);
}

describe('the image of an agent', { timeout: 300_000 }, () => {
  it('[R1] [R3] is made by the first `sally agent`, used by the next, and made anew with the sandbox by --rebuild', async () => {
    const folder = await newFolder();
    const first = await run(['agent', 'small'], folder);
    const reference = /sally: made (\S+)\n/.exec(first.stderr)?.[1] ?? '';
    if (reference !== '') made.add(reference);
    expect([first.code, first.stdout, reference], first.stderr).toEqual([
      0,
      expect.stringMatching(/^made:[0-9a-f-]{36}\n$/),
      expect.stringMatching(new RegExp(`^${repository}:[0-9a-f]{12}$`)),
    ]);
    const image = await engine.find(reference);
    const box = await boxOf(folder);
    expect(box).toMatchObject({ state: 'READY', image: reference });

    const again = await run(['agent', 'small'], folder);
    expect([again.code, again.stdout, again.stderr]).toEqual([
      0,
      first.stdout,
      expect.not.stringContaining('made '),
    ]);
    expect((await boxOf(folder))?.id).toBe(box?.id);

    const anew = await run(['agent', 'small', '--rebuild'], folder);
    expect([anew.code, anew.stderr]).toEqual([0, expect.stringContaining(`made ${reference}`)]);
    expect(anew.stdout).toMatch(/^made:[0-9a-f-]{36}\n$/);
    expect(anew.stdout).not.toBe(first.stdout);
    expect((await engine.find(reference))?.id).not.toBe(image?.id);
    const after = await boxOf(folder);
    expect(after?.name).toBe(box?.name);
    expect(after?.id).not.toBe(box?.id);
    expect((await run(['agent', 'small'], folder)).stdout).toBe(anew.stdout);
  });

  it('[R1] is made once before the tasks of `--each`', async () => {
    const folder = gitRepository();
    await writeFile(join(folder, 'tasks.txt'), 'one\ntwo\n');
    // Other promises are another image, which is not there yet.
    await writeFile(join(root, 'agents', template, 'smoke.txt'), `${promise} each\n`);
    const each = await run(['agent', 'small', '--each', 'tasks.txt', '-j', '2', '--json'], folder);
    const all = [...each.stderr.matchAll(/sally: made (\S+)\n/g)].map(([, reference = '']) => reference);
    for (const reference of all) made.add(reference);
    expect([each.code, all.length], each.stderr).toEqual([0, 1]);
    expect((JSON.parse(each.stdout) as readonly unknown[]).length).toBe(2);
  });

  when(fullSizes).it('[G10] of a template that breaks its promises takes the place of nothing', async () => {
    const folder = await newFolder();
    const first = await run(['agent', 'small'], folder);
    const box = await boxOf(folder);
    const smoke = join(root, 'agents', template, 'smoke.txt');
    await writeFile(smoke, `${promise}\nfalse\n`);
    const broken = await run(['agent', 'small', '--rebuild'], folder);
    expect([broken.code, broken.stdout, broken.stderr]).toEqual([
      125,
      '',
      expect.stringContaining('does not keep what it promises'),
    ]);
    await writeFile(smoke, `${promise}\n`);
    expect((await boxOf(folder))?.id).toBe(box?.id);
    expect((await run(['agent', 'small'], folder)).stdout).toBe(first.stdout);
  });
});
