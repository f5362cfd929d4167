/**
 * Watches over the mounts of a running box: before it is used, and now and then while it has something to protect. Says what is
 * stale and whether it may be healed; healing is for whoever holds the box.
 */

import { SallyportError } from '../protocol/errors.ts';
import { isReplaceable, withoutPlaceholder } from './kept-container.ts';
import { findStaleMounts, findStaleWorkspace, type StaleMount } from './mount-probe.ts';
import type { SandboxRecord } from './records.ts';
import { renewedPlan } from './renewed-plan.ts';

/** A command may run for hours without a call that would notice. */
const lookEveryMs = 5000;
/** A thorough look that found nothing is believed for this long. */
const freshMs = 3000;

export interface GuardHost {
  readonly record: () => SandboxRecord;
  /** Commands that a restart would end. */
  readonly running: () => number;
  readonly tell: (code: string, message: string) => void;
}

export class MountGuard {
  readonly #host: GuardHost;
  #timer: NodeJS.Timeout | undefined;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #told = false;
  /** Sources that are gone and that this run goes on without. */
  #givenUp: ReadonlySet<string> = new Set();

  constructor(host: GuardHost) {
    this.#host = host;
  }

  /** The box was started. */
  begin(): void {
    this.end();
    this.#told = false;
    if ((this.#host.record().plan.stubs ?? []).length === 0) return;
    let looking = false;
    this.#timer = setInterval(() => {
      // A file system that does not answer must not collect looks.
      if (looking) return;
      looking = true;
      void this.#warn().finally(() => {
        looking = false;
      });
    }, lookEveryMs);
    this.#timer.unref();
  }

  end(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#lookedMs = Number.NEGATIVE_INFINITY;
    this.#givenUp = new Set();
  }

  /** The workspace is looked at each time, the rest if it was not a moment ago. */
  async stale(): Promise<StaleMount | undefined> {
    const record = this.#host.record();
    if (performance.now() - this.#lookedMs < freshMs) return await findStaleWorkspace(record);
    const found = await this.#find();
    if (found === undefined) this.#lookedMs = performance.now();
    return found;
  }

  /**
   * R5: true where the sandbox goes on without what is gone, because it could not start again and holds work that exists nowhere else.
   * Throws `mount_stale` where something else has to be mounted again.
   */
  async goesOn(): Promise<boolean> {
    const record = this.#host.record();
    if (isReplaceable(record, record.cleanUp)) return false;
    const renewed = await renewedPlan(record);
    const lacking = renewed === undefined ? undefined : withoutPlaceholder(record, renewed);
    if (renewed === undefined || lacking === undefined) return false;
    const gone = new Set(renewed.gone.map(({ source }) => source));
    const stale = await findStaleMounts(record);
    if (stale.some(({ source }) => !gone.has(source))) throw lacking;
    const news = [...gone].filter((source) => !this.#givenUp.has(source));
    this.#givenUp = gone;
    if (news.length > 0)
      this.#host.tell(
        'mount_stale',
        `${news.join(', ')} was removed on the host: the sandbox goes on without it, because its container cannot start again without it and holds work that was not applied`,
      );
    return true;
  }

  /** Throws where a restart would end commands that run, or would find nothing to mount. */
  requireHealable({ source, target, how }: StaleMount): void {
    const { name, plan } = this.#host.record();
    const running = this.#host.running();
    const folders = [plan.mounts[0]?.source, ...(plan.toolFolders ?? []).map((folder) => folder.source)];
    const isGone = how === 'gone' && !folders.some((folder) => isInside(source, folder));
    if (!isGone && running === 0) return;
    const what = `${source}, which sandbox ${name} has at ${target}, was ${how === 'gone' ? 'removed' : 'replaced'} on the host`;
    const why = isGone ? '' : `, and ${running} of its commands still run with the old one`;
    throw new SallyportError('mount_stale', `${what}${why}`, {
      details: { sandbox: name, path: source, target, running },
      ...(isGone ? { advice: `Make it again, or remove the sandbox: \`sally rm ${name}\`.` } : {}),
    });
  }

  async #find(): Promise<StaleMount | undefined> {
    const found = await findStaleMounts(this.#host.record());
    return found.find(({ source, how }) => how !== 'gone' || !this.#givenUp.has(source));
  }

  async #warn(): Promise<void> {
    if (this.#told || this.#host.running() === 0) return;
    const found = await this.#find();
    if (found === undefined || this.#told || this.#timer === undefined) return;
    this.#told = true;
    this.#lookedMs = Number.NEGATIVE_INFINITY;
    const { source, target, how } = found;
    this.#host.tell(
      'mount_stale',
      `${source} was ${how === 'gone' ? 'removed' : 'replaced'} on the host while commands run: ${target} is not what it was, and may not be protected until the sandbox is started again`,
    );
  }
}

/** Strictly: what is in the workspace or a tool's folder is made again, as a stub if need be, or left out; the folder itself is not. */
const isInside = (path: string, folder: string | undefined): boolean =>
  folder !== undefined && path.startsWith(`${folder}/`);
