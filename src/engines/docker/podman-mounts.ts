/** What Podman does otherwise with binds than Docker, and must not do to ours. Asked before a container is made. */

import { existsSync } from 'node:fs';
import type { BoxMount } from '../../protocol/box.ts';
import { SallyportError } from '../../protocol/errors.ts';

/**
 * SECURITY: Podman joins the fields of a bind to a line of CSV without quoting, so a folder named `x,target=/etc` would
 * become another mount. It also makes a missing source, as root, where Docker refuses.
 *
 * `isLocal`: the engine sees the same files as this process. Elsewhere a missing source cannot be told from here.
 */
export function requirePodmanMounts(mounts: readonly BoxMount[], isLocal: boolean): void {
  for (const { source, target } of mounts) {
    const path = [source, target].find((text) => /[,"\n\r]/.test(text));
    if (path !== undefined) {
      throw new SallyportError(
        'refused_by_policy',
        `Podman cannot mount a path with a comma, a quote or a line break: ${JSON.stringify(path)}`,
        { details: { path }, advice: 'Rename the folder, or use Docker Engine.' },
      );
    }
    if (isLocal && !existsSync(source)) {
      throw new SallyportError('engine_failed', `the bind source does not exist: ${source}`, {
        details: { path: source },
        advice: 'Make it first, or mount another path.',
      });
    }
  }
}
