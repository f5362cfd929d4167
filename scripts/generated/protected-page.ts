/**
 * docs/protected-names.md: what a host executes unasked, by whom and when, as `policy/executed-names.ts` has it for workspaces and
 * `policy/tool-names.ts` for folders of built-in tools.
 */

import { builtinTools } from '../../src/policy/builtin-tools.ts';
import { type ExecutedName, executedNames, writableNames } from '../../src/policy/executed-names.ts';
import { type ToolName, toolNames } from '../../src/policy/tool-names.ts';

const missing: Readonly<Record<ExecutedName['missing'], string>> = {
  placeholder: 'empty folder',
  scan: 'reported when it appears',
};

/** Names with the same program, time and treatment share a row. */
function rows(): readonly string[] {
  const groups = new Map<string, ExecutedName[]>();
  for (const entry of executedNames) {
    const key = [entry.by, entry.when, entry.missing].join('|');
    groups.set(key, [...(groups.get(key) ?? []), entry]);
  }
  return [...groups.values()].map((entries) => {
    const names = entries.map(({ name }) => `\`${name}\``).join(', ');
    const { by, when, missing: how } = entries[0] ?? { by: '', when: '', missing: 'scan' as const };
    return `| ${names} | ${by} | ${when} | ${missing[how]} |`;
  });
}

/** The same for tools, by folder. */
function toolRows(): readonly string[] {
  const mounts = Object.values(builtinTools).flatMap((tool) => tool.mounts);
  const groups = new Map<string, ToolName[]>();
  for (const entry of toolNames) {
    const key = [entry.mount, entry.by, entry.when, entry.inside, JSON.stringify(entry.missing)].join('|');
    groups.set(key, [...(groups.get(key) ?? []), entry]);
  }
  return [...groups.values()].flatMap((entries) => {
    const [first] = entries;
    if (first === undefined) return [];
    const folder = `~/${mounts.find(({ id }) => id === first.mount)?.source}`;
    const names = entries.map(({ name }) => (name === '.' ? `\`${folder}\`` : `\`${folder}/${name}\``));
    return `| ${names.join(', ')} | ${first.by} | ${first.when} | ${inside[first.inside]} | ${whenMissing(first)} |`;
  });
}

const inside: Readonly<Record<ToolName['inside'], string>> = {
  readonly: 'read-only',
  own: 'own, empty at first',
  copy: 'own, a copy at first',
};

function whenMissing({ missing: how, name }: ToolName): string {
  if (how === 'scan') return 'reported when it appears';
  if (how !== 'folder') return how.content === '' ? 'empty file' : `file with \`${how.content.trim()}\``;
  return name === '.' ? 'the tool goes without it' : 'empty folder';
}

export function protectedPage(): string {
  return `# Names that a host executes

Programs of the host execute these files and folders without being asked to. The list applies to
[live workspaces](live-workspace.md) and to [\`sally apply\`](results.md).

- In a live workspace an existing one at the root is read-only inside. A missing one gets a placeholder
  (an empty folder) where its tool looks for a folder, or was tried with one; otherwise the scan reports
  it when it appears. Below the root the scan reports all of them, except in \`node_modules\` and
  \`site-packages\`.
- \`sally apply\` brings none of them back, at any depth, unless \`--include-protected PATH\` names it.
- Names match without regard to case, invisible characters, dots and spaces at the end, and NTFS streams,
  and also as Windows shortens them: \`.git.\`, \`GIT~1\`, \`.vscode \` and \`VSCODE~1\` count.

Git directories have rules of their own: [live-workspace.md](live-workspace.md#git-directories).

| name | executed by | when | if missing at the root |
|---|---|---|---|
${rows().join('\n')}

## Folders of built-in tools

A [built-in tool](builtin-tools.md) brings folders of your home. The programs below execute or obey these
names there. They are held unless the tool has \`mode: shared\`. "Own" means that the sandbox has a folder of
its own in that place, which your machine never sees. Names without a placeholder are read-only where they
exist.

| name | executed or obeyed by | when | inside | if missing |
|---|---|---|---|---|
${toolRows().join('\n')}

## What stays writable in a workspace

A sandbox can change everything else. Read it before you run it.

| what | why it is not held |
|---|---|
${writableNames.map(({ what, because }) => `| ${what} | ${because} |`).join('\n')}
`;
}
