/** `sally files`: look at files inside a sandbox and change them. Everything is done inside, by the sandbox's user. */

import type { EntryView, StatView, WatchView } from '../../protocol/views.ts';
import { snaked } from '../../sdk/case.ts';
import type { FileEntry } from '../../sdk/sandbox-files.ts';
import { inside, type OpenedPlace, openPlace, requirePlace } from '../box-place.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { pump } from '../foreground.ts';
import { print, printJson, shownContent } from '../output.ts';
import { SandboxCalls } from '../sandbox-calls.ts';
import { modeText, printable, table } from '../table.ts';

async function at(
  text: string,
  { signal }: CliContext,
  act: (place: OpenedPlace, signal: AbortSignal) => Promise<void>,
): Promise<number> {
  const place = requirePlace(text);
  const calls = new SandboxCalls();
  try {
    await act(await openPlace(calls, place, signal), signal);
    return signal.aborted ? exitCode.interrupted : exitCode.ok;
  } finally {
    calls.close();
  }
}

export async function filesLs(
  text: string,
  options: { readonly long?: true; readonly json?: true },
  context: CliContext,
): Promise<number> {
  return await at(text, context, async ({ files, path }, signal) => {
    const details = options.long === true || options.json === true;
    const entries = await files.list(path, { details, signal });
    if (options.json === true) printJson({ entries: entries.map((entry) => snaked(entry) as EntryView) });
    else if (options.long === true)
      for (const row of table(['MODE', 'OWNER', 'SIZE', 'MODIFIED', 'NAME'], entries.map(longRow)))
        print(row);
    else for (const { kind, name } of entries) print(`${printable(name)}${marks[kind] ?? ''}`);
  });
}

const marks: Readonly<Record<string, string>> = { directory: '/', symlink: '@' };
const letters: Readonly<Record<string, string>> = { directory: 'd', symlink: 'l', file: '-' };

function longRow({ kind, name, mode, uid, gid, size, modifiedAt, linkTarget }: FileEntry): readonly string[] {
  return [
    `${letters[kind] ?? '?'}${mode === undefined ? '' : modeText(mode)}`,
    uid === undefined ? '' : `${uid}:${gid}`,
    size === undefined ? '' : String(size),
    modifiedAt ?? '',
    linkTarget === undefined ? name : `${name} -> ${linkTarget}`,
  ];
}

export async function filesCat(text: string, context: CliContext): Promise<number> {
  return await at(text, context, async ({ files, path }, signal) => {
    await pump(shownContent(files.stream(path, { signal })), process.stdout);
  });
}

export async function filesWrite(
  text: string,
  options: { readonly append?: true; readonly mode?: number },
  context: CliContext,
): Promise<number> {
  return await at(text, context, async ({ files, path }, signal) => {
    await files.write(path, process.stdin as AsyncIterable<Buffer>, {
      signal,
      ...(options.append === true ? { how: 'append' as const } : {}),
      ...(options.mode === undefined ? {} : { mode: options.mode }),
    });
  });
}

export async function filesStat(
  text: string,
  options: { readonly json?: true },
  context: CliContext,
): Promise<number> {
  return await at(text, context, async ({ files, path }, signal) => {
    const found = await files.stat(path, { followLinks: false, signal });
    if (options.json === true) {
      printJson(snaked(found) as StatView);
      return;
    }
    print(
      `${printable(found.name)}  ${found.kind}${found.linkTarget === undefined ? '' : ` to ${printable(found.linkTarget)}`}`,
    );
    print(
      `size ${found.size}, mode ${found.mode.toString(8).padStart(4, '0')}, owner ${found.uid}:${found.gid}, modified ${found.modifiedAt}`,
    );
  });
}

export async function filesMkdir(
  text: string,
  options: { readonly parents?: true },
  context: CliContext,
): Promise<number> {
  return await at(text, context, async ({ files, path }, signal) => {
    await files.mkdir(path, { parents: options.parents === true, signal });
  });
}

export async function filesRm(
  text: string,
  options: { readonly recursive?: true },
  context: CliContext,
): Promise<number> {
  return await at(text, context, async ({ files, path }, signal) => {
    await files.remove(path, { recursive: options.recursive === true, signal });
  });
}

export async function filesMv(text: string, to: string, context: CliContext): Promise<number> {
  return await at(text, context, async ({ files, path, workdir }, signal) => {
    await files.rename(path, inside(to, workdir), { signal });
  });
}

export async function filesWatch(
  text: string,
  options: { readonly recursive?: true; readonly json?: true },
  context: CliContext,
): Promise<number> {
  return await at(text, context, async ({ files, path }, signal) => {
    for await (const change of files.watch(path, { recursive: options.recursive === true, signal })) {
      if (options.json === true) print(JSON.stringify(snaked(change) as WatchView));
      else if (change.kind !== 'ready') print(`${change.kind}  ${printable(change.path)}`);
    }
  });
}
