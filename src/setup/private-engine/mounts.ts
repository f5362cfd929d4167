/** Mounts that a dockerd leaves behind when it does not end by itself: network namespaces, overlays, shm. */

import { readFile } from 'node:fs/promises';
import { runCommand } from '../run-command.ts';

/** Mount points at or below a folder, the deepest first, from the text of `/proc/self/mountinfo`. */
export function mountsBelow(mountinfo: string, folder: string): readonly string[] {
  return mountinfo
    .split('\n')
    .map((line) => unescapeOctal(line.split(' ')[4] ?? ''))
    .filter((path) => path === folder || path.startsWith(`${folder}/`))
    .sort((a, b) => b.length - a.length);
}

/** The kernel writes space, tab, newline and backslash as three octal digits. */
function unescapeOctal(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_match, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}

async function mountsOf(folder: string): Promise<readonly string[]> {
  return mountsBelow(await readFile('/proc/self/mountinfo', 'utf8').catch(() => ''), folder);
}

/** True when nothing is mounted there any more, so that removing the folder cannot reach into something else. */
export async function unmountBelow(
  folder: string,
  environment: Readonly<Record<string, string>>,
): Promise<boolean> {
  for (const path of await mountsOf(folder)) {
    const plain = await runCommand(['umount', path], { environment, timeoutMs: 10_000 });
    if (plain.exitCode !== 0) await runCommand(['umount', '-l', path], { environment, timeoutMs: 10_000 });
  }
  return (await mountsOf(folder)).length === 0;
}
