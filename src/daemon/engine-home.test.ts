import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readEngineFolder } from '../lib/engine-folders.ts';
import { engineChoice } from '../protocol/engine-environment.ts';
import { type EngineHome, takeEngineHome } from './engine-home.ts';

function stateFolder(): string {
  const path = mkdtempSync(join(tmpdir(), 'sallyport-home-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

async function homeIn(stateDir: string): Promise<EngineHome> {
  const home = await takeEngineHome(stateDir, engineChoice({}));
  if ('heldBy' in home) throw new Error(`held by ${home.heldBy}`);
  return home;
}

/** A daemon's start that reaches the engine, and its end. */
async function start(stateDir: string, engine: { endpoint: string; id?: string }): Promise<void> {
  const home = await homeIn(stateDir);
  try {
    home.reached(engine);
  } finally {
    home.release();
  }
}

const hold = (stateDir: string): void =>
  void mkdirSync(join(stateDir, 'sandboxes', 'one'), { recursive: true });

describe('the folder of an engine', () => {
  it('[A12] is not taken over by another engine while it holds sandboxes', async () => {
    const stateDir = stateFolder();
    const first = { endpoint: 'unix:///a.sock', id: 'A' };
    await start(stateDir, first);
    hold(stateDir);
    await start(stateDir, first);
    for (const other of [{ endpoint: 'unix:///b.sock', id: 'B' }, { endpoint: 'unix:///b.sock' }]) {
      await expect(start(stateDir, other)).rejects.toMatchObject({
        code: 'daemon_engine_differs',
        message: expect.stringMatching(/engine unix:\/\/\/a\.sock.*unix:\/\/\/b\.sock/),
        advice: expect.stringContaining('DOCKER_HOST=unix:///b.sock sally'),
      });
      expect(readEngineFolder(stateDir)).toMatchObject({ endpoint: 'unix:///a.sock', engineId: 'A' });
    }
    await start(stateDir, first);
  });

  it('goes to another engine while it holds none', async () => {
    const stateDir = stateFolder();
    await start(stateDir, { endpoint: 'unix:///a.sock', id: 'A' });
    await start(stateDir, { endpoint: 'unix:///b.sock' });
    const now = readEngineFolder(stateDir);
    expect(now).toMatchObject({ endpoint: 'unix:///b.sock' });
    expect(now).not.toHaveProperty('engineId');
  });

  it('knows an engine by another address: by its id, or the socket behind a link', async () => {
    const stateDir = stateFolder();
    hold(stateDir);
    const [socket, link] = [join(stateDir, 'real.sock'), join(stateDir, 'link.sock')];
    writeFileSync(socket, '');
    symlinkSync(socket, link);
    await start(stateDir, { endpoint: `unix://${socket}` });
    await start(stateDir, { endpoint: `unix://${link}`, id: 'A' });
    await start(stateDir, { endpoint: 'tcp://127.0.0.1:2375', id: 'A' });
    await expect(start(stateDir, { endpoint: `unix://${socket}` })).rejects.toMatchObject({
      code: 'daemon_engine_differs',
    });
  });
});
