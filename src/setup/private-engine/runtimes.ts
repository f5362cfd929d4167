/**
 * The configuration file of the private engine. It belongs to whoever edits it; as long as nobody has, it is ours, and
 * names the runtimes beside runc that this machine has.
 *
 * gVisor gets no network of its own in its sandbox's kernel beyond the loopback, as every sandbox; `systrap` is the
 * platform that needs neither hardware virtualisation nor ptrace. Without an overlay: gVisor would throw away with every stop
 * what was written to the root.
 */

import { accessSync, constants } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';

const noRuntimes = '{}\n';
const gvisorArguments = ['--platform=systrap', '--network=none', '--overlay2=none'];
/** What earlier versions wrote, and so is not somebody else's. */
const earlierArguments = [['--platform=systrap', '--network=none']];

export function runtimesConfig(runscPath: string | undefined, runtimeArgs = gvisorArguments): string {
  if (runscPath === undefined) return noRuntimes;
  const runtimes = { runsc: { path: runscPath, runtimeArgs } };
  return `${JSON.stringify({ runtimes }, undefined, 2)}\n`;
}

/** The absolute path of a program in PATH. A relative entry of PATH is no place for what an engine runs as root. */
export function findInPath(program: string, path: string | undefined): string | undefined {
  return (path ?? '')
    .split(delimiter)
    .filter(isAbsolute)
    .map((folder) => join(folder, program))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

/** Only what a start of ours wrote: word for word a file without runtimes, or with gVisor and nothing else. */
function isOurs(text: string): boolean {
  if (text === noRuntimes) return true;
  const quoted = /"path": ("[^"]*")/.exec(text)?.[1];
  if (quoted === undefined) return false;
  const path = JSON.parse(quoted) as string;
  return [gvisorArguments, ...earlierArguments].some((words) => text === runtimesConfig(path, words));
}

/** True when the file changed: an engine that runs already reads it again on SIGHUP. */
export async function writeRuntimes(
  configFile: string,
  environment: Readonly<Record<string, string>>,
): Promise<boolean> {
  const wanted = runtimesConfig(findInPath('runsc', environment['PATH']));
  let present: string | undefined;
  try {
    present = await readFile(configFile, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  if (present === wanted || (present !== undefined && !isOurs(present))) return false;
  await writeFile(configFile, wanted);
  return true;
}

/** For a start that came to nothing; one that somebody filled in stays. */
export async function removeRuntimes(configFile: string): Promise<void> {
  if (isOurs(await readFile(configFile, 'utf8').catch(() => ''))) await rm(configFile);
}
