/**
 * Whether a runtime that the engine lists works here: a small container is started on it, porter must answer in it and read files as it does
 * at the start of a sandbox. An engine lists what its configuration names, installed or not, and a runtime may start and fail at the first read.
 *
 * Each result is kept as long as this daemon runs, by engine and runtime. A failure of the engine itself says nothing of a
 * runtime: it is the caller's, and not kept.
 */

import { randomBytes } from 'node:crypto';
import { hardenedBox } from '../policy/hardening.ts';
import type { RuntimeKnowledge } from '../policy/strongest-runtime.ts';
import { Porter } from '../porter/porter.ts';
import { isSallyportError } from '../protocol/errors.ts';
import { label, ownedLabels } from '../protocol/labels.ts';
import type { BoxEngine, EngineFacts } from './ports.ts';
import { showInForce } from './verify.ts';
import type { SandboxWorld } from './world.ts';

/** As for a sandbox. */
const helloTimeoutMs = 20_000;

/** What there is of a sandbox before its container is made. */
export interface MadeParts {
  readonly image: string;
  readonly porterVolume: string;
}

/** Undefined: it works. */
type Failure = string | undefined;

interface Check {
  readonly result: Promise<Failure>;
  knowledge: RuntimeKnowledge;
}

type Engine = Pick<BoxEngine, 'create' | 'attach' | 'start' | 'remove'>;
type EngineIdentity = Pick<EngineFacts, 'id' | 'endpoint' | 'version'>;

export class RuntimeChecks {
  readonly #engine: Engine;
  readonly #owner: string;
  readonly #checkpoint: SandboxWorld['checkpoint'];
  readonly #report: SandboxWorld['report'];
  readonly #checks = new Map<string, Check>();

  constructor({
    engine,
    owner,
    checkpoint,
    report,
  }: Pick<SandboxWorld, 'owner' | 'checkpoint' | 'report'> & { readonly engine: Engine }) {
    this.#engine = engine;
    this.#owner = owner;
    this.#checkpoint = checkpoint;
    this.#report = report;
  }

  known(facts: EngineIdentity, runtime: string): RuntimeKnowledge {
    return this.#checks.get(keyOf(facts, runtime))?.knowledge ?? 'unknown';
  }

  /** Why the runtime does not work; undefined: it does. Runs to its end whatever the caller does: others may wait for the same. */
  async failure(facts: EngineIdentity, runtime: string, parts: MadeParts): Promise<Failure> {
    const key = keyOf(facts, runtime);
    const known = this.#checks.get(key);
    if (known !== undefined) return await known.result;
    const check: Check = { result: this.#tried(runtime, parts), knowledge: 'unknown' };
    this.#checks.set(key, check);
    try {
      const failure = await check.result;
      check.knowledge = failure === undefined ? 'works' : 'fails';
      return failure;
    } catch (error) {
      this.#checks.delete(key);
      throw error;
    }
  }

  async #tried(runtime: string, { image, porterVolume }: MadeParts): Promise<Failure> {
    const box = hardenedBox({
      name: `sallyport-runtime-${randomBytes(12).toString('hex')}`,
      image,
      porterVolume,
      labels: ownedLabels('runtime-check', { [label.owner]: this.#owner }),
      // No daemon knows it after a crash: porter ends with this process, and then the engine removes the container.
      endsWithHost: true,
      runtime,
    });
    let id: string | undefined;
    try {
      id = await this.#engine.create(box);
      await this.#answers(id);
      return undefined;
    } catch (error) {
      // Before there is a container, what the engine does not find is the image.
      const isImage = id === undefined && isSallyportError(error, 'engine_not_found');
      if (isImage || isOfEngine(error)) throw error;
      return error instanceof Error ? error.message : String(error);
    } finally {
      await this.#removed(box.name, id);
    }
  }

  async #removed(name: string, id: string | undefined): Promise<void> {
    if (id === undefined) return;
    await this.#engine.remove(id).catch((error: unknown) => this.#report(`remove ${name}`, error));
  }

  async #answers(id: string): Promise<void> {
    const door = await this.#engine.attach(id);
    try {
      await this.#engine.start(id);
      this.#checkpoint('runtime.started');
      const porter = await Porter.open(door, {
        epoch: 1,
        token: randomBytes(32),
        timeoutMs: helloTimeoutMs,
      });
      try {
        await showInForce(porter);
      } finally {
        porter.close();
      }
    } finally {
      door.destroy();
    }
  }
}

const keyOf = ({ id, endpoint, version }: EngineIdentity, runtime: string): string =>
  JSON.stringify([id ?? endpoint, version, runtime]);

/** The engine is away, closed to this user or full; another runtime would fare no better. */
const isOfEngine = (error: unknown): boolean =>
  isSallyportError(error, 'engine_unreachable') ||
  isSallyportError(error, 'engine_permission_denied') ||
  isSallyportError(error, 'disk_full');
