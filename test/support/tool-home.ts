/** A home of the test's own with folders of built-in tools: never the one of whoever runs the test. */

import { chownSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Sandbox } from '../../src/sandboxes/sandbox.ts';
import { temporaryFolder } from './little-engine.ts';
import { isRoot } from './requires.ts';
import { runInSandbox, type TestSandboxes } from './sandboxes.ts';

/** As root the home must be somebody else's. */
export const homeOwner = isRoot ? 1234 : (process.getuid?.() ?? -1);

/** Folders that claude and codex need. */
export const bareTools = { '.claude/': '', '.codex/': '', '.agents/': '' };

/** Path to content; one that ends with a slash is a folder. */
export function toolHome(files: Readonly<Record<string, string>>): string {
  const path = temporaryFolder();
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(name.endsWith('/') ? join(path, name) : dirname(join(path, name)), { recursive: true });
    if (!name.endsWith('/')) writeFileSync(join(path, name), content);
  }
  if (isRoot)
    for (const name of ['.', ...(readdirSync(path, { recursive: true }) as string[])])
      chownSync(join(path, name), homeOwner, homeOwner);
  return path;
}

/** Of a home: path to content, or what it is. */
export function homeTree(root: string): Record<string, string> {
  const names = (readdirSync(root, { recursive: true }) as string[]).sort();
  return Object.fromEntries(
    names.map((name) => {
      const facts = lstatSync(join(root, name));
      return [
        name,
        facts.isFile() ? readFileSync(join(root, name), 'utf8') : facts.isDirectory() ? '/' : '->',
      ];
    }),
  );
}

/** Runs a script in the home inside. */
export const inHomeOf = async (box: Sandbox, script: string): Promise<string> =>
  (await runInSandbox(box, ['sh', '-c', `cd\n${script}`])).output.data;

/** Messages of the notes with this code. */
export const notesOf = async ({ sandboxes }: TestSandboxes, code: string): Promise<string[]> => {
  const messages: string[] = [];
  for await (const event of sandboxes.events.follow(0, new AbortController().signal)) {
    if (event.type === 'sandbox.note' && event.code === code) messages.push(event.message);
    if (event.sequence === sandboxes.events.sequence) break;
  }
  return messages;
};
