/**
 * What the image of a sandbox must have for its user, because nobody inside may make it: folders and files that copies go to, and
 * the folders of the home above what is mounted there, which an engine would make as root. Pure.
 */

import { posix } from 'node:path';
import type { BoxPlan } from './box-plan.ts';
import { isWithin } from './paths.ts';

export interface ImagePlaces {
  readonly workdir: string;
  readonly folders: readonly string[];
  /** Empty ones. */
  readonly files: readonly string[];
}

export function imagePlaces({ user, workdir, copies, mounts }: BoxPlan): ImagePlaces {
  const workspace = copies.find(({ isWorkspace }) => isWorkspace);
  const targetsOf = (kind: 'file' | 'directory'): readonly string[] =>
    copies.filter((copy) => copy.kind === kind && !copy.isWorkspace).map(({ target }) => target);
  const aboveMounts = mounts
    // What is mounted on a place in another mount finds it there.
    .filter(({ target }) => !mounts.some((other) => target.startsWith(`${other.target}/`)))
    .map(({ target }) => posix.dirname(target))
    .filter((folder) => folder !== user.home && isWithin(folder, user.home));
  return {
    workdir: workspace?.target ?? workdir,
    folders: [...new Set([...targetsOf('directory'), ...aboveMounts])].sort(),
    files: [...targetsOf('file')].sort(),
  };
}
