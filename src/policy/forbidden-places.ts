/**
 * The known places that are never mounted or copied, as one list to be read by programs. `forbidden-sources.ts` is the rule; it
 * reads the same data, and judges more: real paths, the homes and sockets of this machine, and folders that contain such a place.
 */

import { executedInHome } from './builtin-tools.ts';
import type { SourceRefusal } from './forbidden-sources.ts';
import {
  credentialsInHome,
  knownEngineSockets,
  programTrees,
  sharedFolders,
  startupInHome,
  systemTrees,
} from './host-places.ts';

export interface ForbiddenMountSource {
  /** Absolute, or below every home folder if `inHome`. */
  readonly path: string;
  readonly inHome: boolean;
  /** Why, as in the error's details. A home folder that is among them, such as `/root`, has the rule `home` there. */
  readonly rule: SourceRefusal['rule'];
  /** `always`, or only a `writable` mount. */
  readonly refused: 'always' | 'writable';
}

const entries = (
  paths: readonly string[],
  rule: ForbiddenMountSource['rule'],
  more: Partial<Pick<ForbiddenMountSource, 'inHome' | 'refused'>> = {},
): readonly ForbiddenMountSource[] =>
  [...new Set(paths)].map((path) =>
    Object.freeze({ path, inHome: more.inHome ?? false, rule, refused: more.refused ?? 'always' }),
  );

/** Of a machine of this platform. */
export const forbiddenPlaces = (platform: string): readonly ForbiddenMountSource[] =>
  Object.freeze([
    ...entries(['/'], 'root'),
    ...entries(
      systemTrees(platform).map(({ path }) => path),
      'system',
    ),
    ...entries(knownEngineSockets, 'engine-socket'),
    ...entries(sharedFolders, 'shared'),
    ...entries(programTrees, 'programs', { refused: 'writable' }),
    ...entries(credentialsInHome, 'credentials', { inHome: true }),
    ...entries([...startupInHome, ...executedInHome], 'startup', { inHome: true, refused: 'writable' }),
  ]);
