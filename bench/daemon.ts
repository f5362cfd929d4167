/** `npm run bench -- daemon`: what it costs a program to run `true` through the daemon, against `docker exec`. */

import { Sandbox } from '../src/sdk/sandbox.ts';
import { benchEnv, nowhere, numberOption, openBenchEngine, withPorter } from './box.ts';
import { withHome } from './daemon-home.ts';
import { type Contender, compete, makeReport, present } from './harness.ts';

export async function main(args: readonly string[]): Promise<number> {
  const rounds = numberOption(args, 'rounds', 15);
  const engine = await openBenchEngine();
  await withPorter(engine, async (porter) => {
    await withHome(engine, async ({ start, docker }) => {
      const { client } = await start();
      const box = await Sandbox.create({ image: engine.image }, { client });
      const container = `sallyport-${box.name}-${box.id.slice(3)}`;
      const contenders: readonly Contender[] = [
        {
          name: 'box.exec by the daemon',
          perRound: 100,
          once: async () => {
            const { exitCode } = await box.exec(['true']);
            if (exitCode !== 0) throw new Error(`true ended with ${exitCode}`);
          },
        },
        {
          name: 'porter without a daemon',
          perRound: 100,
          once: async () => {
            const exec = porter.exec({ argv: ['true'], env: benchEnv, cwd: '/' }, nowhere());
            await exec.result;
            exec.forget();
          },
        },
        {
          name: 'box.exec of 1 KB of output',
          perRound: 40,
          once: async () => void (await box.exec(['head', '-c', '1000', '/dev/zero'])),
        },
        { name: 'docker exec', perRound: 8, once: () => docker('exec', container, 'true') },
      ];
      const rows = await compete(contenders, rounds);
      present(makeReport('daemon', rows, await engine.versions()), args);
      await box.remove();
      client.close();
    });
  });
  return 0;
}
