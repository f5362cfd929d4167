import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  engineFolderPath,
  forgetEngineFolder,
  listEngineFolders,
  readEngineFolder,
  writeEngineFolder,
} from './engine-folders.ts';

function stateDir(): string {
  const path = mkdtempSync(join(tmpdir(), 'sallyport-folders-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

describe('the folders of engines', () => {
  it('give the state folder itself to the first engine, and folders below it to the others', () => {
    const state = stateDir();
    expect(engineFolderPath(state, 'docker')).toBe(state);
    const first = { path: state, key: 'docker', variables: {}, endpoint: 'unix:///a.sock' };
    writeEngineFolder(first);
    expect(engineFolderPath(state, 'docker')).toBe(state);
    const path = engineFolderPath(state, 'bubblewrap');
    expect(path).toBe(join(state, 'engines/bubblewrap'));
    const second = { path, key: 'bubblewrap', variables: { SALLYPORT_ENGINE: 'bubblewrap' } };
    writeEngineFolder(second);
    expect(listEngineFolders(state)).toEqual([first, second]);
    expect(statSync(join(path, 'daemon.json')).mode & 0o777).toBe(0o600);
    expect(statSync(path).mode & 0o777).toBe(0o700);
    forgetEngineFolder(state);
    expect(engineFolderPath(state, 'bubblewrap')).toBe(state);
  });

  it.each(['', '{', 'null', '[]', '{"key":"../../etc"}', '{"key":7}'])(
    'leave one alone whose file is damaged: %j',
    (text) => {
      const state = stateDir();
      writeFileSync(join(state, 'daemon.json'), text);
      expect(readEngineFolder(state)).toEqual({ path: state, key: 'unreadable', variables: {} });
      expect(engineFolderPath(state, 'docker')).toBe(join(state, 'engines/docker'));
    },
  );

  it('say what is wrong with a file that cannot be read', () => {
    const state = stateDir();
    mkdirSync(join(state, 'daemon.json'));
    expect(() => readEngineFolder(state)).toThrow('EISDIR');
  });
});
