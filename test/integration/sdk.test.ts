/** Sandboxes as programs use them, through a daemon of their own. */

import { createHash, randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { isSallyportError } from '../../src/protocol/errors.ts';
import { CommandFailedError } from '../../src/sdk/outcome.ts';
import { Sandbox } from '../../src/sdk/sandbox.ts';
import { testDaemon } from '../support/daemon.ts';
import { holdsLimits } from '../support/engine-under-test.ts';
import { dockerAlone, when } from '../support/selection.ts';
import { until } from '../support/until.ts';

/** The number of its connection: a new sandbox gets a second one after a while. */
async function epochOf(stateDir: string, box: Sandbox): Promise<number> {
  const text = await readFile(join(stateDir, 'sandboxes', box.id, 'sandbox.json'), 'utf8');
  return (JSON.parse(text) as { epoch: number }).epoch;
}

describe('the SDK', () => {
  it('runs commands: output, exit code, signal, input, environment, folder, time limit', async () => {
    const { make } = await testDaemon();
    await using box = await make({ envs: { A: 'spec' } });
    const both = await box.sh('echo out; echo err >&2; exit 3');
    expect(both).toMatchObject({
      exitCode: 3,
      stdout: 'out\n',
      stderr: 'err\n',
      truncated: false,
      timedOut: false,
    });
    expect(both.output.split('\n').sort()).toEqual(['', 'err', 'out']);
    expect(await box.exec(['cat'], { input: 'given' })).toMatchObject({ exitCode: 0, stdout: 'given' });
    expect((await box.sh('echo $A $B; pwd', { envs: { B: 'call' }, cwd: '/usr' })).stdout).toBe(
      'spec call\n/usr\n',
    );
    expect(await box.sh('kill -9 $$')).toMatchObject({ signal: 'SIGKILL' });
    expect(await box.exec(['sleep', '60'], { timeoutMs: 200 })).toMatchObject({ timedOut: true });
    await expect(box.sh('exit 7', { check: true })).rejects.toThrow(CommandFailedError);
    await expect(box.exec(['/no/such/program'])).rejects.toMatchObject({ code: 'exec_start_failed' });
    await expect(box.exec([])).rejects.toMatchObject({
      code: 'request_invalid',
      details: { field: 'body.argv' },
    });
  });

  it('keeps head and tail of long output, and all of it in the log', async () => {
    const { make } = await testDaemon();
    await using box = await make();
    const result = await box.sh('head -c 1000000 /dev/zero | tr "\\0" x; echo end');
    expect(result.truncated).toBe(true);
    expect(result.totalBytes.stdout).toBe(1_000_004);
    expect(result.stdout.length).toBeLessThan(270_000);
    let bytes = 0;
    for await (const chunk of box.logs(result.id)) bytes += chunk.length;
    expect(bytes).toBe(1_000_004);
    const tail: Buffer[] = [];
    for await (const chunk of box.logs(result.id, { tail: 4 })) tail.push(chunk);
    expect(Buffer.concat(tail).toString()).toBe('end\n');
  });

  it('kills a command inside when it is cancelled', async () => {
    const { make } = await testDaemon();
    await using box = await make();
    const controller = new AbortController();
    const running = box.exec(['sleep', '77'], { signal: controller.signal });
    while ((await box.execs()).length === 0) await box.refresh();
    controller.abort();
    await expect(running).rejects.toMatchObject({ code: 'cancelled' });
    const [exec] = await box.execs();
    for await (const event of box.events({ since: 0 })) {
      if (event.type === 'exec.ended' && event.execId === exec?.id) break;
    }
    expect((await box.sh('ps -eo args | grep -c "[s]leep 77"')).stdout).toBe('0\n');
  });

  it('streams both ways, with a terminal if asked', async () => {
    const { make } = await testDaemon();
    await using box = await make();
    await using echo = await box.spawn(['sh', '-c', 'while read line; do echo "got $line"; done'], {
      stdin: true,
    });
    const lines = echo.stdout[Symbol.asyncIterator]();
    echo.stdin.write('one\n');
    expect(String((await lines.next()).value)).toBe('got one\n');
    echo.stdin.end('two\n');
    expect(String((await lines.next()).value)).toBe('got two\n');
    expect(await echo.wait()).toMatchObject({ exitCode: 0 });
    await using terminal = await box.spawn(['sh', '-c', 'stty size; read x; stty size'], {
      stdin: true,
      tty: { rows: 10, columns: 20 },
    });
    const shown = terminal.stdout[Symbol.asyncIterator]();
    expect(String((await shown.next()).value)).toContain('10 20');
    await terminal.resize(30, 40);
    terminal.stdin.write('\n');
    let rest = '';
    for (let next = await shown.next(); next.done !== true; next = await shown.next())
      rest += String(next.value);
    expect(rest).toContain('30 40');
  });

  it('gives a slow reader every byte', async () => {
    const { make } = await testDaemon();
    await using box = await make();
    await using child = await box.spawn(['sh', '-c', 'head -c 20000000 /dev/zero; echo done >&2']);
    let bytes = 0;
    for await (const chunk of child.stdout) {
      bytes += chunk.length;
      if (bytes % 7 === 0) await new Promise((done) => setImmediate(done));
    }
    expect(bytes).toBe(20_000_000);
    expect(await child.stderr.text()).toBe('done\n');
  });

  // Bubblewrap needs no other connection.
  when(dockerAlone).it('hands over input that waits while the sandbox gets another connection', async () => {
    const { make, stateDir } = await testDaemon();
    await using box = await make();
    const epoch = (): Promise<number> => epochOf(stateDir, box);
    const before = await epoch();
    const script = 'until [ -e /tmp/go ]; do sleep 0.02; done; sha256sum';
    await using child = await box.spawn(['sh', '-c', script], { stdin: true });
    const input = randomBytes(3_000_000);
    // More than the sandbox takes while nobody reads it: the rest waits here.
    child.stdin.end(input);
    // A new sandbox leaves the attached stream for a relay by itself.
    await expect.poll(epoch, { timeout: 60_000 }).toBeGreaterThan(before);
    await box.exec(['touch', '/tmp/go']);
    expect(await child.stdout.text()).toBe(`${createHash('sha256').update(input).digest('hex')}  -\n`);
  });

  when(dockerAlone).it(
    'a reader that does not read holds up nobody when the sandbox gets another connection',
    async () => {
      const { make, stateDir } = await testDaemon();
      await using box = await make();
      const before = await epochOf(stateDir, box);
      // More than is kept for a reader, long before the move.
      await using child = await box.spawn(['sh', '-c', 'head -c 200000000 /dev/zero; echo; echo whole >&2']);
      await expect.poll(() => epochOf(stateDir, box), { timeout: 60_000 }).toBeGreaterThan(before);
      expect((await box.exec(['echo', 'others go on'])).stdout).toBe('others go on\n');
      let bytes = 0;
      for await (const chunk of child.stdout) bytes += chunk.length;
      expect(bytes).toBe(200_000_001);
      expect(await child.stderr.text()).toBe('whole\n');
      expect(await child.wait()).toMatchObject({ exitCode: 0 });
    },
  );

  it('goes on with its commands over a daemon that is killed: no byte lost, none twice', async () => {
    const { make, kill } = await testDaemon();
    await using box = await make();
    const script = 'i=0; while read line; do i=$((i+1)); echo "$i $line"; done; exit 9';
    await using child = await box.spawn(['sh', '-c', script], { stdin: true });
    const waiting = box.exec(['sh', '-c', 'sleep 3; echo late'], {});
    // One that may not have begun is not asked for again.
    await until(async () => (await box.execs()).length === 2);
    let text = '';
    let killed = 0;
    child.stdin.write('x\n'.repeat(1000));
    for await (const chunk of child.stdout) {
      text += String(chunk);
      const seen = text.split('\n').length - 1;
      if (seen >= 1000 && killed === 0) {
        killed++;
        await kill();
        child.stdin.write('y\n'.repeat(1000));
      }
      if (seen >= 2000 && killed === 1) {
        killed++;
        await kill();
        child.stdin.end('z\n');
      }
    }
    const expected = Array.from(
      { length: 2001 },
      (_, index) => `${index + 1} ${index < 1000 ? 'x' : index < 2000 ? 'y' : 'z'}`,
    );
    expect(text.trimEnd().split('\n')).toEqual(expected);
    expect(await child.wait()).toMatchObject({ exitCode: 9 });
    expect(await waiting).toMatchObject({ exitCode: 0, stdout: 'late\n' });
  });

  it('attaches to a command that runs, from its beginning, and leaves it running', async () => {
    const { make } = await testDaemon();
    await using box = await make();
    const started = await box.spawn(['sh', '-c', 'echo first; exec sleep 60'], { background: true });
    for await (const _ of started.stdout) break;
    started.disconnect();
    {
      await using again = box.attach(started.id);
      for await (const chunk of again.stdout) {
        expect(String(chunk)).toBe('first\n');
        break;
      }
    }
    expect((await box.execs()).find(({ id }) => id === started.id)).toMatchObject({ state: 'running' });
    await box.attach(started.id).kill(0);
  });

  it('reads, writes, lists, moves and watches files, also with names that are no text', async () => {
    const { make } = await testDaemon();
    await using box = await make();
    const { files } = box;
    await files.mkdir('/tmp/a/b', { parents: true });
    const watching = files.watch('/tmp/a');
    expect((await watching.next()).value).toMatchObject({ kind: 'ready' });
    await files.write('/tmp/a/f', 'content', { mode: 0o755 });
    expect(await files.stat('/tmp/a/f')).toMatchObject({ kind: 'file', size: 7, mode: 0o755 });
    const changes: string[] = [];
    while (!changes.includes('f')) changes.push((await watching.next()).value?.path ?? 'f');
    await watching.return(undefined);
    expect((await files.read('/tmp/a/f', { offset: 3, length: 2 })).toString()).toBe('te');
    await files.symlink('f', '/tmp/a/link');
    expect(await files.stat('/tmp/a/link', { followLinks: false })).toMatchObject({
      kind: 'symlink',
      linkTarget: 'f',
    });
    await files.rename('/tmp/a/f', '/tmp/a/g');
    const odd = Buffer.from([0x2f, 0x74, 0x6d, 0x70, 0x2f, 0x61, 0x2f, 0xff, 0x25, 0x2b, 0x26, 0x20]);
    await files.write(odd, 'odd');
    expect((await files.read(odd)).toString()).toBe('odd');
    const entries = await files.list('/tmp/a');
    expect(entries.map(({ name }) => name)).toEqual(['b', 'g', 'link', expect.stringContaining('%+& ')]);
    expect(entries.at(-1)?.nameBase64).toBe(odd.subarray(7).toString('base64'));
    await files.remove('/tmp/a', { recursive: true });
    await expect(files.stat('/tmp/a')).rejects.toMatchObject({ code: 'file_not_found' });
    await expect(files.write('/proc/x', 'no')).rejects.toSatisfy((error) => isSallyportError(error));
    await expect(files.write('/etc/x', Buffer.alloc(3_000_000))).rejects.toMatchObject({
      code: 'file_denied',
    });
  });

  it('copies files and whole trees in and out', async () => {
    const { make } = await testDaemon();
    await using box = await make();
    const folder = await mkdtemp(join(tmpdir(), 'sally-copy-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    await mkdir(join(folder, 'in/deep'), { recursive: true });
    await writeFile(join(folder, 'in/deep/big'), Buffer.alloc(3_000_000, 7));
    await writeFile(join(folder, 'in/run'), '#!/bin/sh\n', { mode: 0o755 });
    await symlink('deep/big', join(folder, 'in/link'));
    await box.files.upload(join(folder, 'in'), '/tmp/tree');
    expect((await box.sh('cd /tmp/tree && find . | sort && stat -c %a run')).stdout).toBe(
      '.\n./deep\n./deep/big\n./link\n./run\n755\n',
    );
    await box.sh('cd /tmp/tree && mkfifo pipe && ln -s /etc/passwd out && ln -s ../../../x up');
    const { entries, skipped } = await box.files.download('/tmp/tree', join(folder, 'out'));
    expect(entries).toBe(4);
    expect(skipped.map(({ path }) => path).sort()).toEqual(['out', 'pipe', 'up']);
    expect((await readFile(join(folder, 'out/link'))).equals(Buffer.alloc(3_000_000, 7))).toBe(true);
    await box.files.download('/tmp/tree/deep/big', join(folder, 'one/file'));
    expect((await readFile(join(folder, 'one/file'))).length).toBe(3_000_000);
    await box.files.upload(join(folder, 'in/run'), '/tmp/run');
    expect((await box.files.stat('/tmp/run')).mode).toBe(0o755);
  });

  it('stops, starts, pauses, finds, verifies and removes sandboxes', async () => {
    const { make, client } = await testDaemon();
    const box = await make({ name: 'mine', labels: { team: 'x' } });
    expect(await Sandbox.list({ client, labels: { team: 'x' } })).toMatchObject([
      { name: 'mine', state: 'READY' },
    ]);
    expect(await Sandbox.list({ client, labels: { team: 'y' } })).toEqual([]);
    if (holdsLimits) {
      await box.pause();
      expect(box.info.state).toBe('PAUSED');
      await box.resume();
      expect((await box.stats()).memoryLimitBytes).toBe(box.info.limits.memoryBytes);
    }
    expect(await box.verify()).toMatchObject({ ok: true });
    await box.stop();
    expect(box.info.state).toBe('STOPPED');
    await expect(box.exec(['true'])).rejects.toMatchObject({ code: 'sandbox_state' });
    await box.start();
    const { id } = box;
    {
      await using same = await Sandbox.connect('mine', { client });
      expect(same.id).toBe(id);
      expect((await same.exec(['true'])).exitCode).toBe(0);
    }
    expect((await box.refresh()).state).toBe('READY');
    await expect(make({ name: 'mine' })).rejects.toMatchObject({ code: 'sandbox_exists' });
    await box[Symbol.asyncDispose]();
    await expect(Sandbox.connect('mine', { client })).rejects.toMatchObject({ code: 'sandbox_not_found' });
    await box.remove();
  });

  it('follows events over a daemon that is killed', async () => {
    const { make, kill } = await testDaemon();
    await using box = await make();
    const seen: number[] = [];
    const ended: string[] = [];
    let kills = 0;
    await box.exec(['true']);
    for await (const event of box.events({ since: 0 })) {
      seen.push(event.sequence);
      if (event.type !== 'exec.ended') continue;
      ended.push(event.execId);
      if (kills++ === 2) break;
      await kill();
      await box.exec(['true']);
    }
    expect(ended).toHaveLength(3);
    expect(new Set(ended).size).toBe(3);
    expect(seen).toEqual([...new Set(seen)].sort((a, b) => a - b));
  });

  it('leaves nothing of a create that was cancelled or failed', async () => {
    const { make, client, containers } = await testDaemon();
    await client.ensure();
    const controller = new AbortController();
    const making = make({ signal: controller.signal });
    while ((await Sandbox.list({ client })).length === 0) await client.json('GET', '/v1/health');
    controller.abort();
    await expect(making).rejects.toThrow();
    expect(await Sandbox.list({ client })).toEqual([]);
    expect(await containers()).toBe(0);
    await expect(make({ image: 'localhost:1/none:x', ephemeral: true })).rejects.toMatchObject({
      kind: expect.any(String),
    });
    expect(await Sandbox.list({ client })).toEqual([]);
  });
});
