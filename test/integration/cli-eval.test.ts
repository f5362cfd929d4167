import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { sally } from '../support/cli.ts';
import { temporaryFolder } from '../support/little-engine.ts';

describe('sally eval', () => {
  test('[C1] says where a command belongs and marks what is wrong with it', async () => {
    const { code, stdout } = await sally(['eval', 'ls && rm -rf /']);
    expect(code).toBe(0);
    const lines = stdout.split('\n');
    expect(lines[0]).toBe('sandbox, after you confirm it  (destructive)');
    expect(lines[2]?.slice(lines[3]?.indexOf('^'))).toBe('rm -rf /');
    expect(stdout).toContain('forbidden: "rm -rf /" never runs on the host');
  });

  test('has a form for scripts', async () => {
    const { stdout } = await sally(['eval', '--json', 'cat README.md | head']);
    expect(JSON.parse(stdout)).toEqual({ route: 'host', class: 'safe', confirm: false, reasons: [] });
  });

  test("[C1] goes by the lists of the user's own file, and says where that file is wrong", async () => {
    const home = temporaryFolder();
    const env = { XDG_CONFIG_HOME: home };
    const file = join(home, 'sallyport', 'config.yaml');
    await mkdir(join(home, 'sallyport'));
    await writeFile(file, "guard:\n  blocked: ['git push']\n");
    expect((await sally(['eval', 'git push'], { env })).stdout).toContain('deny  (blocked)');
    expect((await sally(['eval', 'git pull'], { env })).stdout).toContain('host  (network)');
    await writeFile(file, 'guard:\n  bloked: []\n');
    const wrong = await sally(['eval', 'git push'], { env });
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toContain(`${file}:2:3`);
  });

  test('needs a command', async () => {
    expect((await sally(['eval'])).code).toBe(2);
    expect((await sally(['eval', ''])).stdout).toContain('there is no command');
  });
});
