/** `npm run bench -- exec`: what it costs to run `true`, by porter and by the ways that others use. */

import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { dockerBoxEngine } from '../src/engines/docker/box-engine.ts';
import { createContainer } from '../src/engines/docker/containers/create.ts';
import { removeContainer } from '../src/engines/docker/containers/remove.ts';
import { startContainer } from '../src/engines/docker/containers/start.ts';
import { engineVersion } from '../src/engines/docker/system/version.ts';
import { hardenedBox } from '../src/policy/hardening.ts';
import { readPorterBinary } from '../src/porter/binary.ts';
import { OutputQueue } from '../src/porter/output-queue.ts';
import { queueSink } from '../src/porter/output-sink.ts';
import { Porter } from '../src/porter/porter.ts';
import { ownedLabels } from '../src/protocol/labels.ts';
import { benchConnection, testImage } from './engine.ts';
import { engineExec } from './engine-exec.ts';
import { type Contender, compete, makeReport, present } from './harness.ts';

const execute = promisify(execFile);
const env = { PATH: '/usr/bin:/bin' };

export async function main(args: readonly string[]): Promise<number> {
  const rounds = Number(args.find((arg) => arg.startsWith('--rounds='))?.split('=')[1] ?? 20);
  const connection = await benchConnection();
  const image = await testImage(connection);
  const engine = dockerBoxEngine(connection, readPorterBinary);
  const name = `sallyport-bench-${randomBytes(4).toString('hex')}`;
  const box = hardenedBox({
    name,
    image,
    porterVolume: await engine.providePorter(image),
    labels: ownedLabels('sandbox'),
    endsWithHost: true,
  });
  const id = await engine.create(box);
  try {
    const door = await engine.attach(id);
    await engine.start(id);
    const porter = await Porter.open(door, { epoch: 1, token: randomBytes(32), timeoutMs: 10_000 });
    const unread = new OutputQueue();
    unread.discard();
    const docker = (...words: readonly string[]): Promise<unknown> =>
      execute('docker', words, {
        env: { PATH: '/usr/local/bin:/usr/bin:/bin', DOCKER_HOST: connection.endpoint },
      });
    const contenders: readonly Contender[] = [
      {
        name: 'porter',
        perRound: 25,
        once: async () => {
          const exec = porter.exec({ argv: ['true'], env, cwd: '/' }, queueSink(unread, unread));
          const { exitCode } = await exec.result;
          exec.forget();
          if (exitCode !== 0) throw new Error(`true ended with ${exitCode}`);
        },
      },
      {
        name: 'Engine API exec',
        perRound: 5,
        once: async () => void (await engineExec(connection, id, ['true'])),
      },
      { name: 'docker exec', perRound: 3, once: async () => void (await docker('exec', id, 'true')) },
      {
        name: 'Engine API create + start + exec',
        perRound: 1,
        once: async () => {
          const body = {
            Image: image,
            Cmd: ['sleep', '1000'],
            Labels: ownedLabels('sandbox'),
            HostConfig: { NetworkMode: 'none' },
          };
          const made = await createContainer(connection, { body });
          try {
            await startContainer(connection, made);
            await engineExec(connection, made, ['true']);
          } finally {
            await removeContainer(connection, made);
          }
        },
      },
      {
        name: 'docker run',
        perRound: 1,
        once: async () => void (await docker('run', '--rm', '--network', 'none', image, 'true')),
      },
    ];
    const rows = await compete(contenders, rounds);
    porter.close();
    const { engine: version, components } = await engineVersion(connection);
    present(makeReport('exec', rows, { engine: version, runc: components['runc'] ?? 'unknown' }), args);
  } finally {
    await engine.remove(id);
  }
  return 0;
}
