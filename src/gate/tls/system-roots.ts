/** The roots that servers behind the gate are verified by: Node's own, the system's bundle, and those of the settings. */

import { readFileSync } from 'node:fs';
import tls from 'node:tls';
import type { UpstreamTls } from '../http/upstream.ts';
import { bundlePaths } from './trust-files.ts';

/**
 * Made once, since reading two hundred certificates takes longer than a handshake; and only when it is asked for, since it is a
 * fifth of what a daemon needs to start, and most never open a connection of this kind. Roots of the settings are read at
 * once: a file that holds none has to be an error of the start.
 */
export function upstreamTls(
  extra: readonly string[] = [],
  paths: readonly string[] = bundlePaths,
): UpstreamTls {
  const read = (): tls.SecureContext => {
    const system = paths.flatMap((path) => readIfThere(path)).slice(0, 1);
    const ca = [...tls.rootCertificates, ...system, ...extra];
    return tls.createSecureContext({ ca, minVersion: 'TLSv1.2' });
  };
  let context = extra.length > 0 ? read() : undefined;
  return {
    get context(): tls.SecureContext {
      context ??= read();
      return context;
    },
  };
}

function readIfThere(path: string): readonly string[] {
  try {
    return [readFileSync(path, 'utf8')];
  } catch {
    return [];
  }
}
