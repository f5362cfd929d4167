/**
 * For what nobody tells of: the end of a process that is no child of ours, the length of a file that another one writes.
 * Between two looks it rests, because one that looks without a rest takes a processor from what it waits for.
 */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, restMs));
}

const restMs = 2;
