/**
 * Which engine a run of a test file is about. The project `bubblewrap` of vitest.config.ts runs files of the others once more
 * with the other engine; what only one of them can do is marked in the file with `onDocker`.
 */

import { inject } from 'vitest';
import { isRoot } from './requires.ts';

export const enginesUnderTest = ['docker', 'bubblewrap'] as const;
export type EngineUnderTest = (typeof enginesUnderTest)[number];

export const engineUnderTest: EngineUnderTest =
  process.env['SALLYPORT_TEST_ENGINE'] === 'bubblewrap' ? 'bubblewrap' : 'docker';
export const onDocker = engineUnderTest === 'docker';

/** For a daemon, so that it works with that engine. */
export const engineVariables: Readonly<Record<string, string>> = onDocker
  ? {}
  : { SALLYPORT_ENGINE: engineUnderTest };

/** Of a spec. bubblewrap has no images: a sandbox has this machine's system. */
export const testImage = (): { readonly image?: string } =>
  onDocker ? { image: inject('engine').image } : {};

/** The same on the command line. */
export const imageFlags = (): readonly string[] => (onDocker ? ['--image', inject('engine').image] : []);

/** As `withLimits` of selection.ts, for what a test expects. */
export const holdsLimits = onDocker || isRoot;
