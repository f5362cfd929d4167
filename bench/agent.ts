/**
 * `npm run bench -- agent`: from the command line to an agent's first output, warm: `sally agent`, which looks at sandbox, rules and
 * tokens first, against the agent's own start in a container that has nothing else. It asks for the help, which ends by itself.
 */

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { dockerImageEngine } from '../src/engines/docker/image-engine.ts';
import { engineVersion } from '../src/engines/docker/system/version.ts';
import { ensureTemplate } from '../src/images/ensure-template.ts';
import { packageInfo } from '../src/lib/package-root.ts';
import { openDns } from '../test/support/dns-server.ts';
import { startModelApi } from '../test/support/model-api.ts';
import { attended, benchConnection } from './engine.ts';
import { type Contender, compete, makeReport, present } from './harness.ts';

const execute = promisify(execFile);
const sally = join(packageInfo().root, 'dist/cli/sally.cjs');

interface Tested {
  readonly agent: string;
  readonly secret: string;
  readonly argv: readonly string[];
}

const tested: readonly Tested[] = [
  {
    agent: 'claude',
    secret: 'anthropic',
    argv: ['claude', '--dangerously-skip-permissions', '--help'],
  },
  {
    agent: 'codex',
    secret: 'openai',
    argv: ['codex', '--dangerously-bypass-approvals-and-sandbox', '--help'],
  },
];

export async function main(args: readonly string[]): Promise<number> {
  const rounds = Number(args.find((arg) => arg.startsWith('--rounds='))?.split('=')[1] ?? 10);
  const connection = await benchConnection();
  const stateDir = await mkdtemp(join(tmpdir(), 'sallyport-bench-'));
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-project-'));
  if (process.getuid?.() === 0) await chown(folder, 1000, 1000);
  const api = await startModelApi(() => ({ file: '', content: '', last: '' }));
  const address = ['93.184.215.14'];
  const names = ['api.anthropic.com', 'api.openai.com', 'statsig.anthropic.com', 'sentry.io'];
  const dns = await openDns(Object.fromEntries(names.map((name) => [name, address])));
  await writeFile(join(stateDir, 'roots.pem'), api.rootPem);
  const env = {
    PATH: '/usr/local/bin:/usr/bin:/bin',
    HOME: stateDir,
    DOCKER_HOST: connection.endpoint,
    SALLYPORT_STATE_DIR: stateDir,
    SALLYPORT_DNS_SERVERS: dns.server,
    SALLYPORT_EXTRA_CA_CERTS: join(stateDir, 'roots.pem'),
  };
  const call = async (words: readonly string[], input = ''): Promise<void> => {
    const running = execute(sally, words, { env, cwd: folder });
    running.child.stdin?.end(input);
    await running;
  };
  try {
    const rows = [];
    for (const { agent, secret, argv } of tested) {
      const image = await ensureTemplate(agent, {
        engine: dockerImageEngine(connection),
        ...attended,
      });
      await call(['secret', 'set', secret], 'sk-a-token-of-the-benchmark');
      const bare = ['run', '--rm', '--network=none', '--user=1000:1000', image.reference, ...argv];
      const boxed = ['agent', agent, '--upstream', api.upstream, '--', '--help'];
      rows.push(
        ...(await compete(
          [
            firstOutput(`docker run ${agent}`, 'docker', bare, { env, cwd: folder }),
            firstOutput(`sally agent ${agent}`, sally, boxed, { env, cwd: folder }),
          ],
          rounds,
        )),
      );
    }
    const { engine } = await engineVersion(connection);
    present(makeReport('agent', rows, { engine }), args);
    return 0;
  } finally {
    await call(['reset', '--yes']).catch(() => {});
    await call(['daemon', 'stop']).catch(() => {});
    dns.close();
    await api.close();
    for (const made of [stateDir, folder]) await rm(made, { recursive: true, force: true });
  }
}

/** The time until the first byte of its output; it is waited for to its end all the same. */
function firstOutput(
  name: string,
  program: string,
  words: readonly string[],
  options: { readonly env: Readonly<Record<string, string>>; readonly cwd: string },
): Contender {
  let firstMs = Number.NaN;
  return {
    name,
    perRound: 1,
    measuredMs: () => firstMs,
    once: async () => {
      const from = performance.now();
      const child = spawn(program, words, { ...options, stdio: ['ignore', 'pipe', 'inherit'] });
      child.stdout.once('data', () => {
        firstMs = performance.now() - from;
      });
      child.stdout.resume();
      const [code] = (await once(child, 'close')) as [number | null];
      if (code !== 0) throw new Error(`${name} ended with ${code}`);
    },
  };
}
