import type { CallOptions, EngineConnection } from '../wire/connection.ts';

export interface EngineVersion {
  readonly engine: string;
  readonly api: string;
  readonly os: string;
  /** As Go names it: amd64, arm64. */
  readonly architecture: string;
  readonly kernel: string;
  /** Versions of the parts: `containerd`, `runc`, … in lower case. */
  readonly components: Readonly<Record<string, string>>;
}

interface VersionBody {
  readonly Version: string;
  readonly ApiVersion: string;
  readonly Os: string;
  readonly Arch: string;
  readonly KernelVersion: string;
  readonly Components?: ReadonlyArray<{ readonly Name: string; readonly Version: string }>;
}

export async function engineVersion(
  connection: EngineConnection,
  options: CallOptions = {},
): Promise<EngineVersion> {
  const body = await connection.json<VersionBody>({ method: 'GET', path: '/version', ...options });
  return {
    engine: body.Version,
    api: body.ApiVersion,
    os: body.Os,
    architecture: body.Arch,
    kernel: body.KernelVersion,
    components: Object.fromEntries(
      (body.Components ?? []).map((part) => [part.Name.toLowerCase(), part.Version]),
    ),
  };
}
