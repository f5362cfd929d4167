import { hostPlacesOf } from '../../../protocol/box.ts';
import { label } from '../../../protocol/labels.ts';
import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { labelFilter } from '../wire/filters.ts';

interface ListBody {
  readonly Id: string;
  readonly State: string;
  /** Podman names them in another way here, and then nothing is known of them. */
  readonly Mounts?:
    | readonly { readonly Type?: string; readonly Source?: string; readonly Destination?: string }[]
    | null;
}

/** What is over needs nothing until it is started again. */
const over: ReadonlySet<string> = new Set(['exited', 'dead', 'removing']);

const bindOf = ({ Type, Source, Destination }: NonNullable<NonNullable<ListBody['Mounts']>[number]>) =>
  Type === 'bind' && Source !== undefined ? [{ source: Source, target: Destination ?? Source }] : [];

/**
 * Paths of the host that are bound into a container of Sallyport that runs or is about to, of any owner, or that something is mounted
 * on there. `stopped` is left out: an engine may list a container as running for a moment after its stop.
 */
export async function boundPaths(
  connection: EngineConnection,
  stopped: string | undefined,
  options: CallOptions = {},
): Promise<ReadonlySet<string>> {
  const query = { all: true, filters: labelFilter([label.owned]) };
  return await connection.json<ListBody[], ReadonlySet<string>>(
    { method: 'GET', path: '/containers/json', query, ...options },
    (rows) =>
      new Set(
        rows
          .filter(({ Id, State }) => Id !== stopped && !over.has(State))
          .flatMap(({ Mounts }) => hostPlacesOf((Mounts ?? []).flatMap(bindOf))),
      ),
  );
}
