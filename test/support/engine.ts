/** The real engine that the global set-up found, and things made on it that go away with the test that made them. */

import { inject, onTestFinished } from 'vitest';
import { createContainer } from '../../src/engines/docker/containers/create.ts';
import { removeContainer } from '../../src/engines/docker/containers/remove.ts';
import { startContainer } from '../../src/engines/docker/containers/start.ts';
import { parseEndpoint } from '../../src/engines/docker/endpoint/endpoint.ts';
import type { ContainerBody } from '../../src/engines/docker/types.ts';
import { createVolume } from '../../src/engines/docker/volumes/create.ts';
import { removeVolume } from '../../src/engines/docker/volumes/remove.ts';
import { EngineConnection } from '../../src/engines/docker/wire/connection.ts';
import { openTransport } from '../../src/engines/docker/wire/transport.ts';
import { label } from '../../src/protocol/labels.ts';
import './provided.ts';

export interface TestEngine {
  readonly connection: EngineConnection;
  /** As `DOCKER_HOST` takes it. */
  readonly endpoint: string;
  readonly image: string;
  /** What every object made by a test must carry. */
  readonly labels: (more?: Readonly<Record<string, string>>) => Record<string, string>;
}

export function testEngine(): TestEngine {
  const { endpoint, apiVersion, image } = inject('engine');
  const runId = inject('runId');
  return {
    connection: new EngineConnection(openTransport(parseEndpoint(endpoint)), endpoint, apiVersion),
    endpoint,
    image,
    labels: (more = {}) => ({ [label.owned]: 'true', [label.test]: runId, ...more }),
  };
}

export interface ContainerRequest extends Omit<ContainerBody, 'Image' | 'Labels'> {
  readonly name?: string;
  readonly image?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

/** Created and not started; without a network unless asked; removed when the test ends, however it ends. */
export async function makeContainer(engine: TestEngine, request: ContainerRequest = {}): Promise<string> {
  const { name, image, labels, HostConfig, ...body } = request;
  const id = await createContainer(engine.connection, {
    ...(name === undefined ? {} : { name }),
    body: {
      Cmd: ['sh'],
      Entrypoint: [],
      ...body,
      Image: image ?? engine.image,
      Labels: engine.labels(labels),
      HostConfig: { NetworkMode: 'none', LogConfig: { Type: 'none' }, ...HostConfig },
    },
  });
  onTestFinished(() => removeContainer(engine.connection, id));
  return id;
}

/** A running container whose first process is `sh -c script`. */
export async function runContainer(
  engine: TestEngine,
  script: string,
  request: ContainerRequest = {},
): Promise<string> {
  const id = await makeContainer(engine, { ...request, Cmd: ['sh', '-c', script] });
  await startContainer(engine.connection, id);
  return id;
}

export async function makeVolume(engine: TestEngine, name: string): Promise<string> {
  await createVolume(engine.connection, { name, labels: engine.labels() });
  onTestFinished(() => removeVolume(engine.connection, name));
  return name;
}
