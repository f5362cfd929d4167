/** [R1] Claude Code itself at a terminal: its screen, its keys, the size of its window, and its end. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type AgentWorld, ensureAgentImage, openAgentWorld } from '../support/agent-world.ts';
import { newFolder, sally } from '../support/cli.ts';
import { realClients, when } from '../support/selection.ts';
import { ctrlC, enter, hasTerminal, sallyOnTerminal } from '../support/terminal.ts';

const imagesMs = 900_000;
let world: AgentWorld;

/** Of the window of the only program inside that is called so. */
const sizeOf = (program: string): readonly string[] => [
  'sh',
  '-c',
  'for p in /proc/[0-9]*; do [ "$(tr "\\0" "\\n" <"$p/cmdline" | head -n 1)" != "$1" ] || stty size <"$p/fd/0"; done',
  'sh',
  program,
];

when(realClients, hasTerminal).describe('claude at a terminal', () => {
  beforeAll(async () => {
    await ensureAgentImage('claude');
    world = await openAgentWorld();
  }, imagesMs);
  afterAll(async () => await world.close());

  it('[R10] draws, answers what is typed, hears of another size and of Ctrl-C, and its end is the end', {
    timeout: 180_000,
  }, async () => {
    const { env, api } = world;
    const folder = await newFolder();
    const file = join(folder, 'made-at-a-terminal.txt');
    world.play({ file, content: 'typed for', last: 'the last words of the script' });
    const key = 'sk-ant-api03-real-value-of-the-test-0123456789abcdef';
    expect((await sally(['secret', 'set', 'anthropic'], { env, input: key })).code).toBe(0);

    const screen = await sallyOnTerminal(['agent', 'claude', '--upstream', api.upstream], {
      env,
      cwd: folder,
      size: { rows: 40, columns: 120 },
    });
    // Its first screen: no question about a theme, a key, the folder or what it may do.
    await screen.shows('Claude Code v');
    await screen.shows('bypass permissions on');
    const box = (await world.boxOf(folder))?.name ?? '';
    const inside = async (): Promise<string> =>
      (await sally(['exec', box, ...sizeOf('claude')], { env })).stdout.trim();
    expect(await inside()).toBe('40 120');

    const typed = screen.raw().length;
    screen.type('write it, please');
    // With the line end at once it would be taken for something that was pasted.
    await screen.shows('write it, please', typed);
    screen.type(enter);
    await screen.shows('the last words of the script', typed);
    expect(readFileSync(file, 'utf8')).toBe('typed for');
    const asked = api.seen.filter(({ path }) => path === '/v1/messages');
    expect(asked.some(({ body }) => body.includes('write it, please'))).toBe(true);
    expect(new Set(asked.map(({ headers }) => headers['x-api-key']))).toEqual(new Set([key]));

    const resized = screen.raw().length;
    screen.resize({ rows: 31, columns: 91 });
    // Only a program that was told draws everything again, and to the new width.
    await screen.shows('Claude Code v', resized);
    await screen.shows(`${'─'.repeat(91)}❯`, resized);
    expect(await inside()).toBe('31 91');

    const pressed = screen.raw().length;
    screen.type(ctrlC);
    await screen.shows('Press Ctrl-C again to exit', pressed);
    expect((await world.boxOf(folder))?.running_execs).toBe(1);
    // Both at once: the second counts only for a moment.
    screen.type(ctrlC + ctrlC);
    const { code } = await screen.result;
    const said = screen.raw().slice(pressed);
    expect([code, said]).toEqual([0, expect.stringContaining(`sally: 1 file changed in ${folder}`)]);
    expect(await world.boxOf(folder)).toMatchObject({ state: 'READY', running_execs: 0 });
    expect(screen.raw()).not.toContain(key);
  });
});
