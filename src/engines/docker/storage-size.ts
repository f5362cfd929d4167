/**
 * Creates containers with a size limit of their root file system, where the engine's storage driver supports one. The kernel then refuses
 * writes beyond the limit.
 *
 * `GET /info` does not report whether the file system has quotas enabled. So the first create asks for the limit; if the engine refuses
 * it and accepts the same container without it, creates of the next minutes do not ask again. The refusal may have had another, passing
 * cause, so it does not count for ever. Only the listed storage drivers are asked, because
 * others accept the option and ignore it (containerd's snapshotters).
 */

import { hostname, release } from 'node:os';
import { isSallyportError } from '../../protocol/errors.ts';
import { createContainer } from './containers/create.ts';
import { inspectImage } from './images/inspect.ts';
import { type EngineInfo, engineInfo } from './system/info.ts';
import type { ContainerBody } from './types.ts';
import type { CallOptions, EngineConnection } from './wire/connection.ts';

/** A refusal counts for this long. */
const refusedMs = 10 * 60_000;

export type StorageFacts = Pick<EngineInfo, 'storageDriver' | 'backingFilesystem'>;

/** What the size counts: `written` the container's own data, `whole` also the data of its image, `none`: no support. */
export function sizeOption({ storageDriver, backingFilesystem }: StorageFacts): 'written' | 'whole' | 'none' {
  switch (storageDriver) {
    case 'overlay2':
    case 'overlay':
      return backingFilesystem === 'xfs' ? 'written' : 'none';
    case 'zfs':
      return 'written';
    case 'btrfs':
      return 'whole';
    default:
      return 'none';
  }
}

export class StorageSize {
  readonly #connection: EngineConnection;
  #info: Promise<EngineInfo> | undefined;
  #refusedAtMs = Number.NEGATIVE_INFINITY;
  readonly #nowMs: () => number;

  constructor(connection: EngineConnection, nowMs: () => number = () => performance.now()) {
    this.#connection = connection;
    this.#nowMs = nowMs;
  }

  /** The engine's data root; undefined if the engine does not run on this machine. */
  async folderHere(): Promise<string | undefined> {
    const { endpoint } = this.#connection;
    const { name, kernelVersion, dataRoot } = await this.#infoOnce();
    // A Unix socket may lead to a virtual machine or another host, where the same path is on another disk.
    const isHere = endpoint.startsWith('unix:') && name === hostname() && kernelVersion === release();
    return isHere ? dataRoot : undefined;
  }

  /** Adds the size limit to a request if this engine supports one. A read-only root needs none. */
  async held(body: ContainerBody, limitBytes: number): Promise<ContainerBody> {
    const isRefused = this.#nowMs() - this.#refusedAtMs < refusedMs;
    if (isRefused || body.HostConfig?.ReadonlyRootfs === true) return body;
    const option = sizeOption(await this.#infoOnce());
    if (option === 'none') return body;
    const inImage = option === 'whole' ? (await inspectImage(this.#connection, body.Image)).sizeBytes : 0;
    const StorageOpt = { size: String(limitBytes + inImage) };
    return { ...body, HostConfig: { ...body.HostConfig, StorageOpt } };
  }

  async create(
    request: { readonly name: string; readonly body: ContainerBody },
    limitBytes: number,
    options: CallOptions & { readonly refused?: (reason: string) => void } = {},
  ): Promise<string> {
    const { name } = request;
    const body = await this.held(request.body, limitBytes);
    try {
      return await createContainer(this.#connection, { name, body }, options);
    } catch (error) {
      if (body === request.body || !isSallyportError(error, 'engine_failed')) throw error;
      const id = await createContainer(this.#connection, request, options);
      this.#refusedAtMs = this.#nowMs();
      options.refused?.(error.message);
      return id;
    }
  }

  async #infoOnce(): Promise<EngineInfo> {
    this.#info ??= engineInfo(this.#connection);
    try {
      return await this.#info;
    } catch (error) {
      this.#info = undefined;
      throw error;
    }
  }
}
