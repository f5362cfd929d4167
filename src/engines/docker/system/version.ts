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
  /**
   * What each part (and `engine`) was built from: a commit, or the package version where a distribution built it
   * (`1.1.5+ds1-1+deb12u1`).
   */
  readonly builds: Readonly<Record<string, string>>;
}

interface VersionBody {
  readonly Version: string;
  readonly ApiVersion: string;
  readonly Os: string;
  readonly Arch: string;
  readonly KernelVersion: string;
  readonly Components?: ReadonlyArray<{
    readonly Name: string;
    readonly Version: string;
    readonly Details?: { readonly GitCommit?: string };
  }>;
}

export async function engineVersion(
  connection: EngineConnection,
  options: CallOptions = {},
): Promise<EngineVersion> {
  return await connection.json<VersionBody, EngineVersion>(
    { method: 'GET', path: '/version', ...options },
    (body) => ({
      engine: body.Version,
      api: body.ApiVersion,
      os: body.Os,
      architecture: body.Arch,
      kernel: body.KernelVersion,
      components: Object.fromEntries(
        (body.Components ?? []).map((part) => [part.Name.toLowerCase(), part.Version]),
      ),
      builds: Object.fromEntries(
        (body.Components ?? []).map((part) => [part.Name.toLowerCase(), part.Details?.GitCommit ?? '']),
      ),
    }),
  );
}

/** It speaks the same API and does some things otherwise. */
export function isPodman(version: EngineVersion): boolean {
  return 'podman engine' in version.components;
}
