/** `npm run bench -- cli`: the command line against Docker's own, Node's start included, for the same act in one run. */

import { engineVersion } from '../src/engines/docker/system/version.ts';
import { type CliHome, sallyPath, withCliHome } from './cli-home.ts';
import { benchConnection, testImage } from './engine.ts';
import { type Contender, compete, makeReport, present } from './harness.ts';

export async function main(args: readonly string[]): Promise<number> {
  const rounds = Number(args.find((arg) => arg.startsWith('--rounds='))?.split('=')[1] ?? 20);
  const connection = await benchConnection();
  const image = await testImage(connection);
  await withCliHome(connection, async ({ call, sally }) => {
    await sally('create', '--image', image, '--name', 'bench');
    const [view] = JSON.parse(await sally('inspect', 'bench')) as [{ container_id: string }];
    const rows = [
      ...(await compete(execs(call, view.container_id), rounds)),
      ...(await compete(runs(call, image), rounds)),
    ];
    const { engine } = await engineVersion(connection);
    present(makeReport('cli', rows, { engine }), args);
  });
  return 0;
}

type Call = CliHome['call'];

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
