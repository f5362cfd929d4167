import { type Progress, silent } from '../../../lib/progress.ts';
import { formatSize } from '../../../lib/sizes.ts';
import { SallyportError } from '../../../protocol/errors.ts';
import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { beforeStream, progressLines } from './progress-stream.ts';

/** `name:tag` or `name@sha256:…`; a reference without either would pull every tag there is. */
export async function pullImage(
  connection: EngineConnection,
  reference: string,
  options: CallOptions & { readonly platform?: string; readonly progress?: Progress } = {},
): Promise<void> {
  if (!/(:[^/]+|@sha256:[0-9a-f]{64})$/.test(reference)) {
    throw new SallyportError('usage', `image reference ${reference} names no tag and no digest`);
  }
  const { progress = silent, platform, ...call } = options;
  const stream = await connection
    .stream({
      method: 'POST',
      path: '/images/create',
      query: { fromImage: reference, platform },
      notFound: 'image_pull_failed',
      timeoutMs: 120_000,
      ...call,
    })
    .catch(beforeStream(`pull ${reference}`, 'image_pull_failed'));
  const layers = new Map<string, { current: number; total: number }>();
  for await (const line of progressLines(stream, `pull ${reference}`, 'image_pull_failed')) {
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
