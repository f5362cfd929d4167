/** What the real clients of agents need: their images, and a daemon that takes a stand-in for the model's API for the service. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dockerImageEngine } from '../../src/engines/docker/image-engine.ts';
import { ensureTemplate } from '../../src/images/ensure-template.ts';
import { ownerId } from '../../src/lib/owner.ts';
import { silent } from '../../src/lib/progress.ts';
import type { SandboxView } from '../../src/protocol/views.ts';
import { sally } from './cli.ts';
import { openDns } from './dns-server.ts';
import { testEngine } from './engine.ts';
import { type ModelApi, type Script, startModelApi } from './model-api.ts';
import { removeOwned } from './owned-objects.ts';

/** Made by the first run that needs it; takes minutes. */
export async function ensureAgentImage(template: string): Promise<void> {
  const engine = dockerImageEngine(testEngine().connection);
  await ensureTemplate(template, { engine, progress: silent, consent: async () => true });
}

/** One daemon, which knows the stand-in's names and trusts its certificate. */
export interface AgentWorld {
  readonly api: ModelApi;
  readonly env: Record<string, string>;
  /** What the model does from now on. */
  readonly play: (script: Script) => void;
  readonly boxOf: (folder: string) => Promise<SandboxView | undefined>;
  readonly close: () => Promise<void>;
}

export async function openAgentWorld(): Promise<AgentWorld> {
  let script: Script = { file: '', content: '', last: '' };
  const api = await startModelApi(() => script);
  const address = ['93.184.215.14'];
  const names = [
    'api.anthropic.com',
    'api.openai.com',
    'statsig.anthropic.com',
    'sentry.io',
    'models.opencode.ai',
  ];
  const dns = await openDns(Object.fromEntries(names.map((name) => [name, address])));
  const stateDir = await mkdtemp(join(tmpdir(), 'sallyport-agent-'));
  const roots = join(stateDir, 'roots.pem');
  await writeFile(roots, api.rootPem);
  const env = {
    SALLYPORT_STATE_DIR: stateDir,
    SALLYPORT_DNS_SERVERS: dns.server,
    SALLYPORT_EXTRA_CA_CERTS: roots,
    XDG_CONFIG_HOME: stateDir,
  };
  return {
    api,
    env,
    play: (wanted) => {
      api.seen.length = 0;
      script = wanted;
    },
    boxOf: async (folder) => {
      const { stdout } = await sally(['agent', 'ls', '--json'], { env });
      const { sandboxes } = JSON.parse(stdout) as { sandboxes: readonly SandboxView[] };
      return sandboxes.find(({ workspace }) => workspace?.path === folder);
    },
    close: async () => {
      await sally(['daemon', 'stop'], { env });
      await removeOwned(testEngine().connection, ownerId(process.getuid?.() ?? -1, stateDir));
      await rm(stateDir, { recursive: true, force: true });
      dns.close();
      await api.close();
    },
  };
}
