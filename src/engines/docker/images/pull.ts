import { type Progress, silent } from '../../../lib/progress.ts';
import { formatSize } from '../../../lib/sizes.ts';
import { SallyportError } from '../../../protocol/errors.ts';
import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { beforeStream, type ProgressLine, progressLines } from './progress-stream.ts';

/** `name:tag` or `name@sha256:…`; a reference without either would pull every tag there is. */
export async function pullImage(
  connection: EngineConnection,
  reference: string,
  options: CallOptions & {
    readonly platform?: string;
    readonly progress?: Progress;
    /** As `X-Registry-Auth` has it. */
    readonly credentials?: string;
  } = {},
): Promise<void> {
  if (!/(:[^/]+|@sha256:[0-9a-f]{64})$/.test(reference)) {
    throw new SallyportError('usage', `image reference ${reference} names no tag and no digest`);
  }
  const { progress = silent, platform, credentials, ...call } = options;
  const stream = await connection
    .stream({
      method: 'POST',
      path: '/images/create',
      query: { fromImage: reference, platform },
      ...(credentials === undefined ? {} : { headers: { 'X-Registry-Auth': credentials } }),
      notFound: 'image_pull_failed',
      timeoutMs: 120_000,
      ...call,
    })
    .catch(beforeStream(`pull ${reference}`, 'image_pull_failed'));
  const lost = new LostLayers(reference);
  const layers = new Map<string, { current: number; total: number }>();
  for await (const line of progressLines(stream, `pull ${reference}`, 'image_pull_failed')) {
    lost.read(line);
    const { current, total } = line.progressDetail ?? {};
    if (
      line.id !== undefined &&
      current !== undefined &&
      total !== undefined &&
      line.status === 'Downloading'
    ) {
      layers.set(line.id, { current, total });
      const sum = { current: 0, total: 0 };
      for (const layer of layers.values()) {
        sum.current += layer.current;
        sum.total += layer.total;
      }
      progress({
        step: 'pull',
        message: `${reference}: ${formatSize(sum.current)} of ${formatSize(sum.total)}`,
        ...sum,
      });
    } else if (line.status !== undefined && line.id === undefined) {
      progress({ step: 'pull', message: line.status });
    }
  }
}

/**
 * An engine asks for a layer again and again, for minutes, each time after a longer pause. A registry that has died is given up
 * when it did not give a byte of a layer between two of these.
 */
class LostLayers {
  readonly #reference: string;
  readonly #failures = new Map<string, { count: number; seconds: number }>();

  constructor(reference: string) {
    this.#reference = reference;
  }

  read({ id = '', status = '' }: ProgressLine): void {
    if (status === 'Downloading') this.#failures.delete(id);
    const seconds = Number(/^Retrying in (\d+) second/.exec(status)?.[1] ?? Number.NaN);
    if (Number.isNaN(seconds)) return;
    const known = this.#failures.get(id);
    // It counts down; a larger number than the last is another failure.
    const count = (known?.count ?? 0) + (known === undefined || seconds > known.seconds ? 1 : 0);
    this.#failures.set(id, { count, seconds });
    if (count < 2) return;
    throw new SallyportError(
      'image_pull_failed',
      `pull ${this.#reference}: the registry broke off in layer ${id}`,
    );
  }
}
