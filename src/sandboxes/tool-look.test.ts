import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { lookIntoTool } from './tool-look.ts';

function home(files: Readonly<Record<string, string>>): string {
  const path = mkdtempSync(join(tmpdir(), 'sallyport-look-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), content);
  }
  return path;
}

const look = (path: string, mount: 'claude' | 'codex', isPlaceholder = (_: string) => false) =>
  lookIntoTool(mount, { folder: join(path, `.${mount}`), home: path, isPlaceholder });

describe('[A4] a look into the folder of a tool', () => {
  it('finds what is there of the list, patterns, other cases of a name, and programs', async () => {
    const path = home({
      '.claude/settings.json': '{}',
      '.claude/settings.work.json': '{}',
      '.claude/Settings.JSON': '{}',
      '.claude/statusline-command.sh': '',
      '.claude/own.py': '',
      '.claude/tool': '',
      '.claude/notes.txt': '',
      '.claude/history.jsonl': '',
      '.claude/hooks/x': '',
    });
    chmodSync(join(path, '.claude/tool'), 0o755);
    chmodSync(join(path, '.claude/history.jsonl'), 0o755);
    const { executed, found } = await look(path, 'claude');
    expect([...executed].sort()).toEqual([
      'Settings.JSON',
      'hooks',
      'own.py',
      'settings.json',
      'settings.work.json',
      'statusline-command.sh',
      'tool',
    ]);
    expect(found).toMatchObject({ 'settings.json': 'file', hooks: 'directory', 'own.py': 'file' });
    expect(found['agents']).toBeUndefined();
  });

  it('counts the placeholder of another sandbox as missing', async () => {
    const path = home({ '.claude/settings.json': '{}' });
    const { found } = await look(path, 'claude', (at) => at === join(path, '.claude/settings.json'));
    expect(found['settings.json']).toBeUndefined();
  });

  it('finds programs that settings name in any of the ways, and nothing else of them', async () => {
    const path = home({
      '.claude/a/run.sh': '',
      '.claude/b/tool': '',
      '.claude/c.py': '',
      '.claude/data.json': '',
      '.claude/projects/x.jsonl': '',
    });
    const named = [
      '~/.claude/a/run.sh --x',
      `${path}/.claude/b/tool`,
      '$HOME/.claude/c.py;true',
      '~/.claude/missing/m.js',
      '~/.claude/missing/log',
      '~/.claude/data.json',
      '~/.claude/projects',
      '~/.claude/../.ssh/id',
      '~/.claude/link.sh',
    ];
    symlinkSync('c.py', join(path, '.claude/link.sh'));
    writeFileSync(join(path, '.claude/settings.json'), JSON.stringify({ all: named }));
    writeFileSync(
      join(path, '.claude.json'),
      JSON.stringify({ mcpServers: { x: { args: [`\${HOME}/.claude/mcp/index.mjs`] } } }),
    );
    expect([...(await look(path, 'claude')).named].sort()).toEqual([
      'a/run.sh',
      'b/tool',
      'c.py',
      'link.sh',
      'mcp/index.mjs',
      'missing/m.js',
    ]);
  });

  it('reads the settings of Codex, and no file that is too large or no file', async () => {
    const path = home({ '.codex/config.toml': 'notify = ["~/.codex/n.py"]', '.codex/n.py': '' });
    expect((await look(path, 'codex')).named).toEqual(['n.py']);
    mkdirSync(join(path, '.codex/hooks.json'));
    writeFileSync(join(path, '.codex/work.config.toml'), Buffer.alloc(33 * 2 ** 20, '~/.codex/x.sh '));
    expect((await look(path, 'codex')).named).toEqual(['n.py']);
  });
});
