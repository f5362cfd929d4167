/**
 * Things that cost a program inside nothing and whoever reads them everything: files with holes, deep folders, a porter that does
 * not answer. Every operation on them ends by itself, or at the first Ctrl-C.
 */

import { execFileSync } from 'node:child_process';
import { mkdir, readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { killContainer } from '../../src/engines/docker/containers/kill.ts';
import { listContainers } from '../../src/engines/docker/containers/list.ts';
import { ContentHash, contentHash } from '../../src/lib/content-hash.ts';
import { withZeros } from '../../src/lib/holes.ts';
import { decodeExtents } from '../../src/porter/extents.ts';
import { label } from '../../src/protocol/labels.ts';
import { newFolder, sally, startSally } from '../support/cli.ts';
import { testEngine } from '../support/engine.ts';
import { imageFlags } from '../support/engine-under-test.ts';
import { connectPorter } from '../support/porter-child.ts';
import { bytesOf } from '../support/porter-files.ts';
import { dockerAlone, when } from '../support/selection.ts';
import { until } from '../support/until.ts';

const TiB = 2 ** 40;

let count = 0;
const made: string[] = [];
afterAll(async () => {
  for (const name of made) await sally(['rm', '--force', name]);
});

async function copied(): Promise<{
  readonly name: string;
  readonly folder: string;
  readonly inside: (script: string) => Promise<void>;
}> {
  const name = `endless-${process.pid}-${++count}`;
  const folder = await newFolder();
  await writeFile(join(folder, 'plain.txt'), 'plain\n');
  const flags = ['--workspace', folder, '--workspace-mode', 'copy', '--name', name, ...imageFlags()];
  const { code, stderr } = await sally(['create', ...flags]);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  made.push(name);
  return {
    name,
    folder,
    inside: async (script) => {
      expect((await sally(['exec', name, '--', 'sh', '-c', script])).code).toBe(0);
    },
  };
}

describe('a file with holes', () => {
  it('[N5] of 1 TiB is compared at once, comes out and is applied with its hole, and holds up no rm', async () => {
    const { name, folder, inside } = await copied();
    await inside('truncate -s 1T huge; printf end >> huge; echo more >> plain.txt');
    const diff = await sally(['diff', name]);
    expect(diff.code).toBe(0);
    expect(diff.stdout).toContain('+more');
    const { changes } = JSON.parse((await sally(['diff', name, '--json'])).stdout);
    const hash = new ContentHash().update({ holeBytes: TiB }).update(Buffer.from('end')).digest();
    expect(changes).toMatchObject([
      { path: 'huge', change: 'added', after: { kind: 'file', size: TiB + 3, sha256: hash } },
      { path: 'plain.txt', change: 'changed' },
    ]);
    expect((await sally(['rm', name])).code).toBe(1);
    const out = await newFolder();
    expect((await sally(['cp', `${name}:/workspace/huge`, join(out, 'single')])).code).toBe(0);
    expect((await sally(['cp', `${name}:/workspace`, join(out, 'all')])).code).toBe(0);
    const applied = await sally(['apply', name]);
    expect(applied).toMatchObject({ code: 0 });
    for (const file of [join(out, 'single'), join(out, 'all/huge'), join(folder, 'huge')]) {
      const facts = await stat(file);
      expect(facts.size).toBe(TiB + 3);
      expect(facts.blocks * 512).toBeLessThan(2 ** 20);
    }
    expect(JSON.parse((await sally(['diff', name, '--json'])).stdout).changes).toEqual([]);
    // To compare the one that is here now would take minutes.
    await inside('printf END | dd of=huge bs=1 seek=1T conv=notrunc');
    const again = await sally(['apply', name]);
    expect(again).toMatchObject({ code: 1, stdout: '' });
    expect(again.stderr).toMatch(/huge +has more than 16 GiB of holes and was not compared +changed +yes/);
    expect(await sally(['apply', name, '--force'])).toMatchObject({ code: 0, stdout: 'M\thuge\n' });
    expect((await sally(['rm', name])).code).toBe(0);
  });

  it('[N5] takes no time, and nothing from the budget of other files', async () => {
    const { name, folder, inside } = await copied();
    await inside(
      'for i in 1 2 3 4 5 6; do truncate -s 4G a$i; done; echo more > last; echo more >> plain.txt',
    );
    const began = performance.now();
    const { changes } = JSON.parse((await sally(['diff', name, '--json'])).stdout);
    // Hashing 24 GiB of zeros takes more than a minute.
    expect(performance.now() - began).toBeLessThan(20_000);
    const listed = changes.map(({ path, after }: { path: string; after: { compared?: boolean } }) => [
      path,
      after.compared,
    ]);
    expect(listed).toEqual(
      ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'last', 'plain.txt'].map((path) => [path, undefined]),
    );
    expect(await sally(['apply', name])).toMatchObject({ code: 0 });
    expect(await readFile(join(folder, 'last'), 'utf8')).toBe('more\n');
    expect((await sally(['rm', name])).code).toBe(0);
  });

  it('is compared by its content, and comes out with its holes', async () => {
    const { name, inside } = await copied();
    await inside(
      'mkdir t && truncate -s 300M t/hole && printf end >> t/hole && head -c 300000 /dev/zero > t/zeros',
    );
    const { changes } = JSON.parse((await sally(['diff', name, '--json'])).stdout);
    const content = Buffer.concat([Buffer.alloc(300 * 2 ** 20), Buffer.from('end')]);
    expect(changes).toContainEqual(
      expect.objectContaining({
        path: 't/hole',
        after: expect.objectContaining({ sha256: contentHash(content) }),
      }),
    );
    const out = await newFolder();
    expect((await sally(['cp', `${name}:/workspace/t`, join(out, 't')])).code).toBe(0);
    expect((await sally(['cp', `${name}:/workspace/t/hole`, join(out, 'single')])).code).toBe(0);
    for (const file of ['t/hole', 'single']) {
      const facts = await stat(join(out, file));
      expect(facts.size).toBe(300 * 2 ** 20 + 3);
      expect(facts.blocks * 512).toBeLessThan(2 ** 25);
      expect((await readFile(join(out, file))).equals(content)).toBe(true);
    }
    expect((await readFile(join(out, 't/zeros'))).equals(Buffer.alloc(300_000))).toBe(true);
  });

  it('of every shape is the same when porter sends it as extents', async () => {
    const folder = await newFolder();
    const shapes = {
      all: 'truncate -s 3M $f',
      first: 'head -c 100000 /dev/urandom > $f; truncate -s 3M $f',
      last: 'truncate -s 3M $f; head -c 100000 /dev/urandom >> $f',
      middle: 'truncate -s 1M $f; head -c 70001 /dev/urandom >> $f; truncate -s 3M $f',
      none: 'head -c 3000000 /dev/urandom > $f',
      small: 'truncate -s 60000 $f',
    };
    for (const [name, script] of Object.entries(shapes))
      execFileSync('sh', ['-c', script], { env: { PATH: process.env['PATH'] ?? '', f: join(folder, name) } });
    const { files } = await connectPorter();
    const found: string[] = [];
    for await (const { path, body } of files.getTree(folder)) {
      const chunks: Buffer[] = [];
      for await (const chunk of body) chunks.push(chunk);
      found.push(path.toString());
      expect(Buffer.concat(chunks).equals(await readFile(join(folder, path.toString()))), found.at(-1)).toBe(
        true,
      );
    }
    expect(found.sort()).toEqual((await readdir(folder)).sort());
    for (const name of found) {
      const content = await readFile(join(folder, name));
      for (const [offset, length] of [
        [0, undefined],
        [500_000, 1_000_000],
        [4_000_000, 10],
      ] as const) {
        const options = { offset, ...(length === undefined ? {} : { length }) };
        const until = length === undefined ? undefined : offset + length;
        const pieces = decodeExtents(files.readExtents(join(folder, name), options), offset, until);
        const part = length === undefined ? content : content.subarray(offset, offset + length);
        expect((await bytesOf(withZeros(pieces))).equals(part), `${name} from ${offset}`).toBe(true);
      }
    }
  });

  it('beyond a limit comes without content, and those within it come whole', async () => {
    const folder = await newFolder();
    for (const name of ['a', 'b', 'c']) await writeFile(join(folder, name), name.repeat(1000));
    await writeFile(join(folder, 'large'), 'x'.repeat(1001));
    const { files } = await connectPorter();
    const sent: Record<string, number> = {};
    const limits = { fileBytes: 1000, totalBytes: 2500 };
    await writeFile(join(folder, 'hole'), '');
    await truncate(join(folder, 'hole'), TiB);
    for await (const { path, content, isUnsent, sizeBytes } of files.getTree(folder, { limits })) {
      if (path.toString() === 'hole') {
        expect(isUnsent).toBe(undefined);
        continue;
      }
      expect(sizeBytes).toBe(path.toString() === 'large' ? 1001 : 1000);
      if (isUnsent !== true) sent[path.toString()] = content?.length ?? -1;
    }
    expect(Object.values(sent)).toEqual([1000, 1000]);
    expect(sent).not.toHaveProperty('large');
  });
});

describe('a file of nothing but newlines', () => {
  it('[N5] is named as too large for a patch by diff and apply, and other files are in the patch', async () => {
    const { name, inside } = await copied();
    await inside(`yes '' | head -c 60M > lines; yes '' | head -c 7M > fewer; echo more >> plain.txt`);
    for (const verb of [
      ['diff', name],
      ['diff', '--stat', name],
      ['apply', name, '--patch', '-'],
    ]) {
      const { code, stdout, stderr } = await sally(verb);
      expect(code).toBe(0);
      for (const file of ['lines', 'fewer']) expect(stderr).toContain(`${file} is too large for a patch`);
      expect(stderr).not.toContain('plain.txt is');
      expect(stdout).toContain(verb.includes('--stat') ? '+1 -0' : '+more');
      expect(stdout.length).toBeLessThan(2000);
    }
    expect(await sally(['apply', name])).toMatchObject({ code: 0 });
  });
});

describe('a file of many lines', () => {
  it('[N5] is shown at a terminal to its end, or until the first signal', async () => {
    const { name, inside } = await copied();
    await inside('seq 1 200000 > many');
    const pid = join(await newFolder(), 'pid');
    const start = () =>
      startSally(['-qec', `echo $$ > ${pid}; exec node dist/cli/sally.cjs diff ${name}`, '/dev/null'], {
        command: ['script'],
        cwd: process.cwd(),
        env: { TERM: 'dumb', NO_COLOR: '1' },
      });
    const whole = await start().result;
    expect(whole.code).toBe(0);
    expect(whole.stdout).toContain('+200000\r\n');
    const cut = start();
    await cut.said('+10\r\n');
    process.kill(Number(await readFile(pid, 'utf8')), 'SIGINT');
    const { code, stdout } = await cut.result;
    expect(code).toBe(130);
    expect(stdout).not.toContain('+200000\r\n');
  });
});

describe('10,000 folders in each other', () => {
  it('end a diff with an error, and do not keep a sandbox from being removed', async () => {
    const { name, inside } = await copied();
    await inside(`perl -e 'for (1..10000) { mkdir "d"; chdir "d" or die }'`);
    const diff = await sally(['diff', name]);
    expect(diff.code).toBe(1);
    expect(diff.stderr).toMatch(/get tree .*(too long|too deep)/i);
    expect((await sally(['rm', '--force', name])).code).toBe(0);
    expect((await sally(['ls', '--json'])).stdout).not.toContain(name);
  });
});

/** Nothing inside answers any more, and nothing says that it does not. */
async function stopAnswering(name: string): Promise<void> {
  const { connection } = testEngine();
  const [container] = await listContainers(connection, [`${label.name}=${name}`]);
  if (container === undefined) throw new Error(`no container of ${name}`);
  await killContainer(connection, container.id, 'SIGSTOP');
  onTestFinished(() => killContainer(connection, container.id, 'SIGCONT'));
}

const waiting: Readonly<Record<string, (name: string, folder: string) => readonly string[]>> = {
  diff: (name) => ['diff', name],
  apply: (name) => ['apply', name],
  cp: (name, folder) => ['cp', `${name}:/workspace`, join(folder, 'out')],
  'cp in': (name, folder) => ['cp', folder, `${name}:/tmp/in`],
  rm: (name) => ['rm', name],
  verify: (name) => ['verify', name],
  exec: (name) => ['exec', name, '--', 'true'],
  events: (name) => ['events', '--follow', name],
  inject: (name, folder) => ['inject', name, join(folder, 'a.txt')],
  'files ls': (name) => ['files', 'ls', `${name}:/workspace`],
  stop: (name) => ['stop', '--grace', '1h', name],
};

when(dockerAlone).describe('with a porter that does not answer', () => {
  it.each(Object.keys(waiting))('`sally %s` ends at the first signal, as that signal', async (verb) => {
    const { name } = await copied();
    const folder = await newFolder();
    await mkdir(join(folder, 'more'));
    await writeFile(join(folder, 'a.txt'), 'a');
    await stopAnswering(name);
    for (const [signal, code] of [
      ['SIGINT', 130],
      ['SIGTERM', 143],
    ] as const) {
      const running = startSally(waiting[verb]?.(name, folder) ?? []);
      const connected = async (): Promise<boolean> => await hasSocket(running.child.pid ?? 0);
      await until(connected);
      const began = performance.now();
      running.child.kill(signal);
      expect(await running.result).toMatchObject({ code });
      // At once on a quiet machine, `exec` after the ten seconds that it gives the daemon to kill the command.
      expect(performance.now() - began).toBeLessThan(verb === 'exec' ? 30_000 : 10_000);
    }
  });
});

/** It has asked the daemon. */
async function hasSocket(pid: number): Promise<boolean> {
  const links = execFileSync('sh', ['-c', `ls -l /proc/${pid}/fd 2>/dev/null || true`], { encoding: 'utf8' });
  return (links.match(/socket:/g) ?? []).length > 3;
}
