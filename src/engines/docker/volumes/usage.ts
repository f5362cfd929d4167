import type { CallOptions, EngineConnection } from '../wire/connection.ts';

/** The engine walks all volumes; engines before API 1.42 ignore the filter and walk images and containers as well. */
const walkMs = 120_000;

interface UsageBody {
  readonly Volumes:
    | readonly { readonly Name: string; readonly UsageData?: { readonly Size: number } | null }[]
    | null;
}

/** Bytes by volume name, without volumes of unknown size. */
export async function volumeUsage(
  connection: EngineConnection,
  options: CallOptions = {},
): Promise<ReadonlyMap<string, number>> {
  return await connection.json<UsageBody, ReadonlyMap<string, number>>(
    { method: 'GET', path: '/system/df', query: { type: 'volume' }, timeoutMs: walkMs, ...options },
    ({ Volumes }) =>
      new Map(
        (Volumes ?? []).flatMap(({ Name, UsageData }) =>
          UsageData == null || UsageData.Size < 0 ? [] : [[Name, UsageData.Size] as const],
        ),
      ),
  );
}
