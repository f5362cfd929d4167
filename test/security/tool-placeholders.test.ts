/** Placeholders are put into the user's home while a sandbox runs. Nothing of them is left, whatever happens to the daemon. */

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { ExecResultView } from '../../src/protocol/views.ts';
import { daemonHome } from '../support/daemon-home.ts';
import { testImage } from '../support/engine-under-test.ts';
import { openSandboxes } from '../support/sandboxes.ts';
import { bareTools, homeTree, inHomeOf, toolHome } from '../support/tool-home.ts';

describe('[A4][A16] placeholders in the home', () => {
  test('are shared by two sandboxes, also of two daemons, and go with the last of them', async () => {
    const path = toolHome({ ...bareTools, '.npm/': '' });
    const before = homeTree(path);
    const [one, another] = [await openSandboxes({ home: path }), await openSandboxes({ home: path })];
    const spec = { builtin_tools: ['claude' as const, 'npm' as const] };
    const first = await one.make({ spec: { ...spec, name: 'first' } });
    const second = await one.make({ spec: { ...spec, name: 'second' } });
    const third = await another.make({ spec: { ...spec, name: 'third' } });
    await first.remove({ force: true });
    await second.stop(0);
    const acts =
      '(echo x > .claude/hooks/x) 2>/dev/null || echo held; mkdir -p .npm/_npx/x; (echo x > .claude/settings.json) 2>/dev/null || echo held';
    expect(await inHomeOf(third, acts)).toBe('held\nheld\n');
    await third.remove({ force: true });
    // What another daemon needed is found at the next occasion.
    await second.remove({ force: true });
    expect(homeTree(path)).toEqual(before);
  });

  test.each(['create.stubs', 'create.started', 'create.greeted'])(
    'are taken away by the next daemon when the first is killed at %s',
    async (point) => {
      const daemons = await daemonHome();
      const path = toolHome(bareTools);
      const before = homeTree(path);
      const first = await daemons.start({ SALLYPORT_CRASH_AT: point, HOME: path });
      const spec = { name: 'victim', ...testImage(), builtin_tools: ['claude'] };
      await expect(first.client.json('POST', '/v1/sandboxes', { body: { spec } })).rejects.toBeDefined();
      await first.ended;
      expect(readdirSync(join(path, '.claude'))).toContain('hooks');
      await daemons.start({ HOME: path });
      expect(homeTree(path)).toEqual(before);
    },
  );

  test('hold on when the daemon is killed, and the next one removes them with the sandbox', async () => {
    const daemons = await daemonHome();
    const path = toolHome(bareTools);
    const before = homeTree(path);
    const first = await daemons.start({ HOME: path });
    const spec = { name: 'survivor', ...testImage(), builtin_tools: ['claude', 'codex'] };
    await first.client.json('POST', '/v1/sandboxes', { query: { wait: true }, body: { spec } });
    first.child.kill('SIGKILL');
    await first.ended;
    const next = await daemons.start({ HOME: path });
    const { stdout } = await next.client.json<ExecResultView>('POST', '/v1/sandboxes/survivor/execs', {
      query: { wait: true },
      body: { argv: ['sh', '-c', '(echo x > ~/.claude/hooks/x) 2>/dev/null || echo held'] },
    });
    expect(stdout.data).toBe('held\n');
    await next.client.json('DELETE', '/v1/sandboxes/survivor');
    expect(homeTree(path)).toEqual(before);
  });
});
