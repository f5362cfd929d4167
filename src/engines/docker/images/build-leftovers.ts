/**
 * Takes back what a failed build left. The classic builder keeps an untagged image of every step that succeeded, and as
 * long as one of them is there the image that it was built on cannot be removed either.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { isSallyportError } from '../../../protocol/errors.ts';
import type { EngineConnection } from '../wire/connection.ts';
import { removeImage } from './remove.ts';

const patienceMs = 20_000;
const pollMs = 200;

/** Follows a build's output and collects the short ids of the images that its own steps made. */
export class BuildSteps {
  readonly made: string[] = [];
  #instruction = '';
  #cached = false;

  read(text: string): void {
    for (const line of text.split('\n')) {
      const step = /^Step \d+\/\d+ : (\w+)/.exec(line);
      if (step !== null) {
        this.#instruction = (step[1] ?? '').toUpperCase();
        this.#cached = false;
      } else if (line === ' ---> Using cache') this.#cached = true;
      else {
        const id = /^ ---> ([0-9a-f]{12})$/.exec(line)?.[1];
        if (id !== undefined && this.#instruction !== 'FROM' && !this.#cached) this.made.push(id);
      }
    }
  }
}

interface ListedRow {
  readonly Id: string;
  readonly ParentId: string;
  readonly RepoTags: string[] | null;
}

/** Newest first. Runs to its end whatever the caller's signal says, because that is when it is needed. */
export async function removeBuildLeftovers(connection: EngineConnection, steps: BuildSteps): Promise<void> {
  if (steps.made.length === 0) return;
  const rows = await connection.json<ListedRow[], readonly ListedRow[]>(
    { method: 'GET', path: '/images/json', query: { all: true } },
    (body) => body,
  );
  for (const id of leftovers(rows, steps.made)) await removeWhenFree(connection, id);
}

/**
 * The untagged images among `made` and their untagged children: a step may have been committed without being reported.
 * What a command inside the build prints looks like the builder's own words, so a name in the output is never enough to
 * remove an image that has a tag.
 */
export function leftovers(rows: readonly ListedRow[], made: readonly string[]): readonly string[] {
  const untagged = rows.filter((row) => (row.RepoTags ?? []).every((tag) => tag === '<none>:<none>'));
  const ours = untagged.filter((row) => made.some((id) => row.Id.startsWith(`sha256:${id}`)));
  const order = (row: ListedRow): number => made.findIndex((id) => row.Id.startsWith(`sha256:${id}`));
  const known = new Set(ours.map((row) => row.Id));
  const children = untagged.filter((row) => known.has(row.ParentId) && !known.has(row.Id));
  return [...children, ...ours.sort((a, b) => order(b) - order(a))].map((row) => row.Id);
}

/** The engine ends a cancelled build's container after the client has gone; until then the image is in use. */
async function removeWhenFree(connection: EngineConnection, id: string): Promise<void> {
  const giveUpAtMs = performance.now() + patienceMs;
  for (;;) {
    try {
      await removeImage(connection, id);
      return;
    } catch (error) {
      if (!isSallyportError(error, 'engine_conflict')) throw error;
      if (performance.now() > giveUpAtMs) return;
      await delay(pollMs);
    }
  }
}
