/** `npm run bench -- files`: files into and out of a sandbox, by porter and by `docker cp`. */

import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { dockerBoxEngine } from '../src/engines/docker/box-engine.ts';
import { createContainer } from '../src/engines/docker/containers/create.ts';
import { removeContainer } from '../src/engines/docker/containers/remove.ts';
import { startContainer } from '../src/engines/docker/containers/start.ts';
import { engineVersion } from '../src/engines/docker/system/version.ts';
import { hardenedBox } from '../src/policy/hardening.ts';
import { readPorterBinary } from '../src/porter/binary.ts';
import type { Files } from '../src/porter/files.ts';
import { Porter } from '../src/porter/porter.ts';
import type { TreeSource } from '../src/porter/tree-stream.ts';
import { ownedLabels } from '../src/protocol/labels.ts';
import { benchConnection, testImage } from './engine.ts';
import { type Contender, compete, makeReport, present } from './harness.ts';

const execute = promisify(execFile);
const folders = 100;
const filesPerFolder = 100;

export async function main(args: readonly string[]): Promise<number> {
  const rounds = Number(args.find((arg) => arg.startsWith('--rounds='))?.split('=')[1] ?? 10);
  const connection = await benchConnection();
  const image = await testImage(connection);
  const engine = dockerBoxEngine(connection, readPorterBinary);
  // In memory where there is such a place: writing 10,000 files to a disk takes longer than bringing them.
  const disk = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'sallyport-bench-'));
  const box = await engine.create(
    hardenedBox({
      name: `sallyport-bench-${randomBytes(4).toString('hex')}`,
      image,
      porterVolume: await engine.providePorter(image),
      labels: ownedLabels('sandbox'),
      endsWithHost: true,
    }),
  );
  // `docker cp` refuses a container with a read-only root, which every sandbox is: it gets a plain one.
  const plain = await createContainer(connection, {
    body: {
      Image: image,
      Cmd: ['sleep', '10000'],
      Labels: ownedLabels('sandbox'),
      HostConfig: { NetworkMode: 'none' },
    },
  });
  try {
    const door = await engine.attach(box);
    await engine.start(box);
    await startContainer(connection, plain);
    const porter = await Porter.open(door, { epoch: 1, token: randomBytes(32), timeoutMs: 10_000 });
    makeTree(join(disk, 'tree'));
    writeFileSync(join(disk, 'small'), randomBytes(1024));
    const docker = async (...words: readonly string[]): Promise<void> => {
      const env = { PATH: '/usr/local/bin:/usr/bin:/bin', DOCKER_HOST: connection.endpoint };
      await execute('docker', words, { env });
    };
    const rows = [
      ...(await compete(smallFile(porter.files, docker, plain, disk), rounds)),
      ...(await compete(smallFileBack(porter.files, docker, plain, disk), rounds)),
      ...(await compete(treeIn(porter.files, docker, plain, disk), Math.ceil(rounds / 3))),
      ...(await compete(treeOut(porter.files, docker, plain, disk), Math.ceil(rounds / 3))),
    ];
    porter.close();
    present(makeReport('files', rows, { engine: (await engineVersion(connection)).engine }), args);
  } finally {
    await engine.remove(box);
    await removeContainer(connection, plain);
    rmSync(disk, { recursive: true, force: true });
  }
  return 0;
}

type Docker = (...words: readonly string[]) => Promise<void>;
type Rivals = (files: Files, docker: Docker, plain: string, disk: string) => readonly Contender[];

const smallFile: Rivals = (files, docker, plain, disk) => {
  const content = readFileSync(join(disk, 'small'));
  return [
    {
      name: '1 KB in, porter',
      perRound: 50,
      once: async () => void (await files.write('/tmp/small', content)),
    },
    {
      name: '1 KB in, docker cp',
      perRound: 2,
      once: () => docker('cp', join(disk, 'small'), `${plain}:/small`),
    },
  ];
};

const smallFileBack: Rivals = (files, docker, plain, disk) => [
  {
    name: '1 KB out, porter',
    perRound: 50,
    once: async () => void (await files.readAll('/tmp/small', 2048)),
  },
  {
    name: '1 KB out, docker cp',
    perRound: 2,
    once: () => docker('cp', `${plain}:/small`, join(disk, 'back')),
  },
];

const treeIn: Rivals = (files, docker, plain, disk) => [
  {
    name: '10,000 files in, porter',
    perRound: 1,
    once: async () => {
      await files.mkdir('/tmp/tree', { parents: true });
      await files.putTree('/tmp/tree', readTree(join(disk, 'tree')));
    },
  },
  {
    name: '10,000 files in, docker cp',
    perRound: 1,
    once: () => docker('cp', join(disk, 'tree'), `${plain}:/`),
  },
];

const treeOut: Rivals = (files, docker, plain, disk) => [
  {
    name: '10,000 files out, porter',
    perRound: 1,
    once: async () => {
      for await (const { kind, path, body } of files.getTree('/tmp/tree')) {
        const to = join(disk, 'out', path.toString());
        if (kind === 'directory') mkdirSync(to, { recursive: true });
        if (kind !== 'file') continue;
        const parts: Buffer[] = [];
        for await (const part of body) parts.push(part);
        writeFileSync(to, Buffer.concat(parts));
      }
    },
  },
  {
    name: '10,000 files out, docker cp',
    perRound: 1,
    once: () => docker('cp', `${plain}:/tree`, join(disk, 'docker-out')),
  },
];

function makeTree(root: string): void {
  for (let folder = 0; folder < folders; folder++) {
    mkdirSync(join(root, `d${folder}`), { recursive: true });
    for (let file = 0; file < filesPerFolder; file++) {
      writeFileSync(join(root, `d${folder}`, `f${file}`), randomBytes(200));
    }
  }
}

function* readTree(root: string): Generator<TreeSource> {
  for (const folder of readdirSync(root)) {
    yield { kind: 'directory', path: folder };
    for (const file of readdirSync(join(root, folder))) {
      yield { kind: 'file', path: `${folder}/${file}`, body: readFileSync(join(root, folder, file)) };
    }
  }
}
