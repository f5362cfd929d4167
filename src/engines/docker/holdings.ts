/**
 * Lists everything in an engine, with and without our labels. Only for the decision whether a private engine may be removed: never
 * remove an object because it is listed here (A12).
 */

import type { CallOptions, EngineConnection } from './wire/connection.ts';

export interface Holding {
  readonly kind: 'container' | 'volume' | 'image';
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

type Labels = Record<string, string> | null;

export async function engineHoldings(
  connection: EngineConnection,
  options: CallOptions = {},
): Promise<readonly Holding[]> {
  const containers = await connection.json<
    ReadonlyArray<{ Id: string; Names: readonly string[]; Labels: Labels }>
  >({ method: 'GET', path: '/containers/json', query: { all: true }, ...options });
  const { Volumes: volumes } = await connection.json<{
    Volumes: ReadonlyArray<{ Name: string; Labels: Labels }> | null;
  }>({ method: 'GET', path: '/volumes', ...options });
  const images = await connection.json<
    ReadonlyArray<{ Id: string; RepoTags: readonly string[] | null; Labels: Labels }>
  >({ method: 'GET', path: '/images/json', ...options });
  return [
    ...containers.map(({ Id, Names, Labels: labels }) => ({
      kind: 'container' as const,
      name: Names[0]?.replace(/^\//, '') ?? Id.slice(0, 12),
      labels: labels ?? {},
    })),
    ...(volumes ?? []).map(({ Name, Labels: labels }) => ({
      kind: 'volume' as const,
      name: Name,
      labels: labels ?? {},
    })),
    ...images.map(({ Id, RepoTags, Labels: labels }) => ({
      kind: 'image' as const,
      name: RepoTags?.[0] ?? Id.slice(7, 19),
      labels: labels ?? {},
    })),
  ];
}
