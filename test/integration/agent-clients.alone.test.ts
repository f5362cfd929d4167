/**
 * [R1] [R7] [R9] The real clients of agents in their real images: they ask a stand-in for the model's API through the gate, write
 * a file with a tool of their own, and never have more than a phantom.
 */

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type AgentWorld, ensureAgentImage, openAgentWorld } from '../support/agent-world.ts';
import { newFolder, sally } from '../support/cli.ts';
import { testEngine } from '../support/engine.ts';
import { realClients, when } from '../support/selection.ts';

const { connection } = testEngine();

interface Client {
  readonly agent: string;
  readonly secret: string;
  readonly key: string;
  readonly env: string;
  readonly path: string;
  /** `x-api-key` and `authorization`. */
  readonly header: (value: string) => readonly (string | undefined)[];
}

const tail = 'real-value-of-the-test-0123456789abcdef';

const clients: readonly Client[] = [
  {
    agent: 'claude',
    secret: 'anthropic',
    key: `sk-ant-api03-${tail}`,
    env: 'ANTHROPIC_API_KEY',
    path: '/v1/messages',
    header: (value) => [value, undefined],
  },
  {
    agent: 'claude',
    secret: 'anthropic',
    key: `sk-ant-oat01-${tail}`,
    env: 'CLAUDE_CODE_OAUTH_TOKEN',
    path: '/v1/messages',
    header: (value) => [undefined, `Bearer ${value}`],
  },
  {
    agent: 'codex',
    secret: 'openai',
    key: `sk-proj-${tail}`,
    env: 'OPENAI_API_KEY',
    path: '/v1/responses',
    header: (value) => [undefined, `Bearer ${value}`],
  },
  {
    agent: 'opencode',
    secret: 'anthropic',
    key: `sk-ant-api03-${tail}`,
    env: 'ANTHROPIC_API_KEY',
    path: '/v1/messages',
    header: (value) => [value, undefined],
  },
];

const imagesMs = 900_000;
let world: AgentWorld;

/** Whatever of the whole box names the text: its files, and of every process the environment, the arguments and the memory map. */
const whereIs = (text: string): readonly string[] => [
  'sh',
  '-c',
  // The looker's own arguments have the text in halves.
  `t="$1$2"; grep -rlaF -e "$t" /home /tmp /etc /opt/sallyport/npm/node_modules/.bin /run /var/tmp 2>/dev/null; for p in /proc/[0-9]*; do for f in environ cmdline; do tr '\\0' '\\n' <"$p/$f" 2>/dev/null | grep -qF -e "$t" && [ "\${p#/proc/}" != $$ ] && echo "$p/$f"; done; done; true`,
  'sh',
  text.slice(0, 9),
  text.slice(9),
];

when(realClients).describe.each(clients)('$agent with $env', { timeout: 120_000 }, (client) => {
  beforeAll(async () => {
    await ensureAgentImage(client.agent);
    world = await openAgentWorld();
  }, imagesMs);
  afterAll(async () => await world.close());

  it('[R7] edits a file by a tool of its own; the real key is seen outside alone', async () => {
    const { agent, secret, key } = client;
    const folder = await newFolder();
    const file = join(folder, 'made-by-the-agent.txt');
    const found: Record<string, string> = {};
    let box = '';
    const { api, env } = world;
    world.play({
      file,
      content: 'written by a tool',
      last: 'the last words of the script',
      meanwhile: async () => {
        if (box !== '') return;
        const view = await world.boxOf(folder);
        box = view?.name ?? '';
        const inside = async (argv: readonly string[]) =>
          (await sally(['exec', box, ...argv], { env })).stdout.trim();
        found['phantom'] = await inside(['printenv', client.env]);
        found['real'] = await inside(whereIs(key));
        found['carriers'] = await inside(whereIs(found['phantom']));
        const container = await connection.json({
          method: 'GET',
          path: `/containers/${view?.container_id}/json`,
        });
        found['engine'] = JSON.stringify(container);
      },
    });
    const set = await sally(['secret', 'set', secret], { env, input: key });
    expect([set.code, set.stderr]).toEqual([0, expect.stringContaining('is set')]);
    const ran = await sally(['agent', agent, '--upstream', api.upstream, '-p', 'write the file'], {
      env,
      cwd: folder,
    });

    expect([ran.code, ran.stdout, ran.stderr]).toEqual([
      0,
      expect.stringContaining('the last words of the script'),
      expect.stringContaining(`1 file changed in ${folder}`),
    ]);
    expect(readFileSync(file, 'utf8')).toBe('written by a tool');
    expect(box).toMatch(new RegExp(`^sallyport-${agent}-[0-9a-f]{8}$`));

    const asked = api.seen.filter(({ path }) => path === client.path);
    expect(asked.length).toBeGreaterThanOrEqual(2);
    for (const { headers } of asked)
      expect([headers['x-api-key'], headers.authorization]).toEqual(client.header(key));
    const phantom = found['phantom'] ?? '';
    expect(phantom).toMatch(/^sk-/);
    expect(phantom).not.toBe(key);
    // The looker finds what is there: the phantom is in the environment of the agent's process.
    expect(found['carriers']).toMatch(/\/proc\/\d+\/environ/);
    expect(found['real']).toBe('');
    const shown = [
      await sally(['inspect', box], { env }),
      await sally(['logs', '--list', '--json', box], { env }),
      await sally(['agent', 'logs', box], { env }),
      await sally(['secret', 'ls'], { env }),
    ];
    expect(shown.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
    const image = await connection.json<readonly unknown[]>({
      method: 'GET',
      path: `/images/${encodeURIComponent(`sallyport-${agent}:latest`)}/history`,
    });
    const all = [...shown.flatMap(({ stdout, stderr }) => [stdout, stderr]), ran.stdout, ran.stderr];
    expect([...all, found['engine'], JSON.stringify(image)].join('\n')).not.toContain(key);
    expect(existsSync(join(folder, '.claude.json'))).toBe(false);
  });
});
