/**
 * A daemon that is gone has closed its connections, but this program may not have looked yet. Once it has, none of them is
 * used for a request that nobody could repeat.
 */
export async function turnOfTheLoop(): Promise<void> {
  // The first one may come before anything was looked at.
  await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setImmediate(resolve));
}
