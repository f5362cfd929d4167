/** `npm run bench -- cli`: the command line against Docker's own, Node's start included, for the same act in one run. */

import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { readEngineEnvironment } from '../src/engines/docker/config.ts';
import { dockerImageEngine } from '../src/engines/docker/image-engine.ts';
import { engineVersion } from '../src/engines/docker/system/version.ts';
import { ensureImage } from '../src/images/ensure-image.ts';
import { packageInfo } from '../src/lib/package-root.ts';
import { readSetupEnvironment } from '../src/setup/config.ts';
import { ensureEngine } from '../src/setup/ensure-engine.ts';
import { type Contender, compete, makeReport, present } from './harness.ts';

const execute = promisify(execFile);
const sallyPath = join(packageInfo().root, 'dist/cli/sally.cjs');

export async function main(args: readonly string[]): Promise<number> {
  const rounds = Number(args.find((arg) => arg.startsWith('--rounds='))?.split('=')[1] ?? 20);
  const { found } = await ensureEngine({
    environment: readEngineEnvironment(),
    setup: readSetupEnvironment(),
    progress: ({ message }) => process.stderr.write(`${message}\n`),
    consent: async () => false,
  });
  const { connection } = found;
  const { reference: image } = await ensureImage('test', {
    engine: dockerImageEngine(connection),
    progress: ({ message }) => process.stderr.write(`${message}\n`),
    consent: async () => false,
  });
  const stateDir = await mkdtemp(join(tmpdir(), 'sallyport-bench-'));
  const env = {
    PATH: '/usr/local/bin:/usr/bin:/bin',
    HOME: stateDir,
    DOCKER_HOST: connection.endpoint,
    SALLYPORT_STATE_DIR: stateDir,
  };
  const call = async (program: string, ...words: readonly string[]): Promise<string> =>
    (await execute(program, words, { env, cwd: stateDir })).stdout.trim();
  try {
    await call(sallyPath, 'create', '--image', image, '--name', 'bench');
    const [view] = JSON.parse(await call(sallyPath, 'inspect', 'bench')) as [{ container_id: string }];
    const rows = [
      ...(await compete(execs(call, view.container_id), rounds)),
      ...(await compete(runs(call, image), rounds)),
    ];
    const { engine } = await engineVersion(connection);
    present(makeReport('cli', rows, { engine }), args);
    return 0;
  } finally {
    await call(sallyPath, 'reset', '--yes').catch(() => {});
    await call(sallyPath, 'daemon', 'stop').catch(() => {});
    await rm(stateDir, { recursive: true, force: true });
  }
}

type Call = (program: string, ...words: readonly string[]) => Promise<unknown>;

const contender = (name: string, act: () => Promise<unknown>): Contender => ({
  name,
  perRound: 1,
  once: async () => void (await act()),
});

function execs(call: Call, container: string): readonly Contender[] {
  return [
    contender('docker exec', () => call('docker', 'exec', container, 'true')),
    contender('sally exec', () => call(sallyPath, 'exec', 'bench', 'true')),
    contender('node -e 0', () => call('node', '-e', '0')),
  ];
}

/** The same limits on both sides. */
function runs(call: Call, image: string): readonly Contender[] {
  const limits = ['--memory=4g', '--cpus=2', '--pids-limit=512', '--cap-drop=ALL', '--network=none'];
  const hardening = ['--security-opt=no-new-privileges', '--user=64000:64000', '--tmpfs=/tmp:exec'];
  return [
    contender('docker run --rm', () => call('docker', 'run', '--rm', ...limits, ...hardening, image, 'true')),
    contender('sally run', () => call(sallyPath, 'run', '--image', image, '--', 'true')),
  ];
}
