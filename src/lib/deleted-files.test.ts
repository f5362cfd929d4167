import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished } from 'vitest';
import { asRoot, when } from '../../test/support/selection.ts';
import { deletedFilesUse } from './deleted-files.ts';

const mib = 2 ** 20;

/** A child that runs the script in a folder, with the folder and its number. It prints a line when the files are there. */
async function holder(script: string): Promise<{ readonly folder: string; readonly pid: number }> {
  const folder = await mkdtemp(join(tmpdir(), 'sally-deleted-'));
  const child: ChildProcess = spawn('python3', ['-c', script], {
    cwd: folder,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await rm(folder, { recursive: true, force: true });
  });
  if (child.stdout === null) throw new Error('no output');
  await once(child.stdout, 'data');
  return { folder, pid: child.pid ?? 0 };
}

const write = `import mmap, os, sys
def make(name):
    f = open(name, "w+b"); f.write(b"x" * ${3 * mib}); f.flush(); os.fsync(f.fileno()); os.unlink(name); return f
def wait():
    print("ready", flush=True); sys.stdin.read()
`;

describe.runIf(process.platform === 'linux')('the use of deleted files', () => {
  const use = async (folder: string, pid: number, except: readonly string[] = []) =>
    await deletedFilesUse({ pids: [pid], of: 'bytes', on: [folder], except });

  when(asRoot).it('[N5] counts those that are open or only mapped, each once', async () => {
    const { folder, pid } = await holder(`${write}
a = make("a"); os.dup(a.fileno())
b = make("b"); kept = mmap.mmap(b.fileno(), 0); b.close()
named = open("c", "wb"); named.write(b"x" * ${mib}); named.flush()
wait()`);
    const { amount, isComplete } = await use(folder, pid);
    expect(isComplete).toBe(true);
    expect(amount).toBeGreaterThanOrEqual(6 * mib);
    expect(amount).toBeLessThan(6.5 * mib);
    expect((await deletedFilesUse({ pids: [pid], of: 'files', on: [folder], except: [] })).amount).toBe(2);
    // Not on another file system, and not in a folder of the host.
    expect((await use('/proc', pid)).amount).toBe(0);
    expect((await use(folder, pid, [folder])).amount).toBe(0);
  });

  when(asRoot).it('[N5] finds the descriptors of a thread with a table of its own', async () => {
    const { folder, pid } = await holder(`${write}
import ctypes, threading
def own():
    assert ctypes.CDLL(None).unshare(0x400) == 0
    kept.append(make("a")); done.set(); threading.Event().wait()
kept, done = [], threading.Event()
threading.Thread(target=own, daemon=True).start(); done.wait(); wait()`);
    expect((await use(folder, pid)).amount).toBeGreaterThanOrEqual(3 * mib);
  });
});
