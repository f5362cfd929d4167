/** What programs can know without a daemon: names and places that the policy of this machine goes by. */

import { type ForbiddenMountSource, forbiddenPlaces } from '../policy/forbidden-places.ts';

export { dockerfileName } from '../protocol/dockerfile-name.ts';
export type { ForbiddenMountSource };

/** Frozen. The daemon judges more than these, so a source that is not among them may be refused as well. */
export const forbiddenMountSources: readonly ForbiddenMountSource[] = forbiddenPlaces(process.platform);
