/** `npm run bench -- cli`: `sally run` and `sally exec` with the daemon up, against `docker run` and `docker exec`. */

import { numberOption, openBenchEngine } from './box.ts';
import { withHome } from './daemon-home.ts';
import { type Contender, compete, makeReport, present } from './harness.ts';

/** What a sandbox has by default, in the peer's words. */
const limits = [
  '--network=none',
  '--memory=4g',
  '--memory-swap=4g',
  '--cpus=2',
  '--pids-limit=512',
  '--shm-size=64m',
  '--tmpfs=/tmp:exec,size=1500m',
  '--ulimit=core=0:0',
  '--ipc=private',
  '--cap-drop=ALL',
  '--security-opt=no-new-privileges',
  '--user=64000:64000',
  '--log-driver=none',
];

export async function main(args: readonly string[]): Promise<number> {
  const rounds = numberOption(args, 'rounds', 15);
  const engine = await openBenchEngine();
  await withHome(engine, async ({ start, docker, sally }) => {
    const { client } = await start();
    await sally('create', '--image', engine.image, '--name', 'bench');
    await docker('run', '--detach', '--name=sally-bench-peer', ...limits, engine.image, 'sleep', '10000');
    try {
      const contenders: readonly Contender[] = [
        {
          name: 'docker run --rm',
          perRound: 1,
          once: () => docker('run', '--rm', ...limits, engine.image, 'true'),
        },
        { name: 'sally run', perRound: 1, once: () => sally('run', '--image', engine.image, '--', 'true') },
        { name: 'docker exec', perRound: 2, once: () => docker('exec', 'sally-bench-peer', 'true') },
        { name: 'sally exec', perRound: 2, once: () => sally('exec', 'bench', 'true') },
      ];
      const rows = await compete(contenders, rounds);
      const versions = await engine.versions();
      present(makeReport('cli', inPairs(rows), versions), args);
    } finally {
      await docker('rm', '--force', 'sally-bench-peer');
      client.close();
    }
  });
  return 0;
}

/** Each of ours against the peer before it. */
function inPairs(rows: Awaited<ReturnType<typeof compete>>): Awaited<ReturnType<typeof compete>> {
  return rows.map((row, index) => {
    const peer = rows[index - (index % 2)] ?? row;
    return { ...row, ratio: row.p50Ms / peer.p50Ms };
  });
}
