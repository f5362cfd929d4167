import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { pathSegment } from '../wire/path-segment.ts';

export interface ContainerState {
  readonly id: string;
  readonly name: string;
  readonly image: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly status: string;
  readonly running: boolean;
  readonly exitCode: number;
  readonly oomKilled: boolean;
  readonly hostConfig: Readonly<Record<string, unknown>>;
}

interface InspectBody {
  readonly Id: string;
  readonly Name: string;
  readonly Image: string;
  readonly Config: { readonly Labels: Record<string, string> | null };
  readonly State: {
    readonly Status: string;
    readonly Running: boolean;
    readonly ExitCode: number;
    readonly OOMKilled: boolean;
  };
  readonly HostConfig: Record<string, unknown>;
}

export async function inspectContainer(
  connection: EngineConnection,
  id: string,
  options: CallOptions = {},
): Promise<ContainerState> {
  return await connection.json<InspectBody, ContainerState>(
    {
      method: 'GET',
      path: `/containers/${pathSegment(id)}/json`,
      ...options,
    },
    (body) => ({
      id: body.Id,
      name: body.Name.replace(/^\//, ''),
      image: body.Image,
      labels: body.Config.Labels ?? {},
      status: body.State.Status,
      running: body.State.Running,
      exitCode: body.State.ExitCode,
      oomKilled: body.State.OOMKilled,
      hostConfig: body.HostConfig,
    }),
  );
}
