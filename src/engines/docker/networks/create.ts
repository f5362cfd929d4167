import type { CallOptions, EngineConnection } from '../wire/connection.ts';

/** A bridge of the engine's own. Names are not unique in an engine, so it is asked to refuse a second one. */
export async function createNetwork(
  connection: EngineConnection,
  request: {
    readonly name: string;
    readonly subnet: string;
    readonly driverOptions: Readonly<Record<string, string>>;
    readonly labels: Readonly<Record<string, string>>;
  },
  options: CallOptions = {},
): Promise<string> {
  return await connection.json<{ Id: string }, string>(
    {
      method: 'POST',
      path: '/networks/create',
      body: {
        Name: request.name,
        CheckDuplicate: true,
        Driver: 'bridge',
        Internal: true,
        Attachable: false,
        EnableIPv6: false,
        IPAM: { Driver: 'default', Config: [{ Subnet: request.subnet }] },
        Options: request.driverOptions,
        Labels: request.labels,
      },
      // An engine makes networks one at a time, each with firewall rules: many at once on a busy machine take a while.
      timeoutMs: 120_000,
      ...options,
    },
    (answer) => answer.Id.toString(),
  );
}
