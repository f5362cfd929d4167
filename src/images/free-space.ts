/** Looks for room before anything is made: running out half-way costs minutes, and an engine without space stops working. */

import { statfs } from 'node:fs/promises';
import { formatSize } from '../lib/sizes.ts';
import { SallyportError } from '../protocol/errors.ts';
import type { RecipeKind } from './recipe.ts';

/** Unpacked root file system, the packages it is made from, and the copies while it is imported and built on. */
export const neededBytes = {
  base: 2 * 2 ** 30,
  test: 512 * 2 ** 20,
  template: 6 * 2 ** 30,
} as const satisfies Record<RecipeKind, number>;

export interface Room {
  readonly folder: string;
  readonly freeBytes: number;
}

/** The first place that has too little room, or undefined. */
export function lacksRoom(rooms: readonly Room[], needed: number): Room | undefined {
  return rooms.find((room) => room.freeBytes < needed);
}

export async function requireRoom(kind: RecipeKind, folders: readonly string[]): Promise<void> {
  const rooms = await Promise.all(folders.map(measure));
  const tight = lacksRoom(
    rooms.filter((room) => room !== undefined),
    neededBytes[kind],
  );
  if (tight === undefined) return;
  throw new SallyportError(
    'disk_full',
    `making the ${kind} image needs ${formatSize(neededBytes[kind])} of free space; ${tight.folder} has ${formatSize(tight.freeBytes)}`,
    { details: { folder: tight.folder, freeBytes: tight.freeBytes, neededBytes: neededBytes[kind] } },
  );
}

/** A folder that cannot be looked at says nothing: the engine's data may lie in another machine or be closed to us. */
async function measure(folder: string): Promise<Room | undefined> {
  try {
    const { bavail, bsize } = await statfs(folder);
    return { folder, freeBytes: bavail * bsize };
  } catch {
    return undefined;
  }
}
