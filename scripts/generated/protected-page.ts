/** docs/protected-names.md: what a host executes unasked, by whom and when, as `policy/executed-names.ts` has it. */

import { type ExecutedName, executedNames, writableNames } from '../../src/policy/executed-names.ts';

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

## What stays writable

A sandbox can change everything else. Read it before you run it.

| what | why it is not held |
|---|---|
${writableNames.map(({ what, because }) => `| ${what} | ${because} |`).join('\n')}
`;
}
