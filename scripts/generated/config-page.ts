/** `docs/config.md`: where settings come from. */

import { guardImageVariable, specVariables } from '../../src/config/config.ts';
import { specFields } from '../../src/config/spec-fields.ts';

export function configPage(): string {
  const rows = specVariables.map(({ name, field, meaning }) => `| \`${name}\` | \`${field}\` | ${meaning} |`);
  const listed = (which: string): string =>
    specFields
      .filter(({ field, approval }) => approval === which && !field.includes('.'))
      .map(({ field }) => `\`${field}\``)
      .join(', ');
  return `# Settings

The strongest source that says something wins:

1. flags of the command
2. environment variables
3. \`sallyport.yaml\` of the project
4. your own file, \`$XDG_CONFIG_HOME/sallyport/config.yaml\` (\`~/.config/sallyport/config.yaml\`)
5. defaults

\`envs\`, \`images\`, \`labels\`, \`limits\` and \`workspace\` are joined key by key, \`mounts\` and \`copies\` by target; everything else is replaced as a whole. An empty list or
map takes away what weaker sources gave, but never \`egress.deny\`; that of a project file leaves \`images\`, \`limits\` and \`egress.upstream\` of your own file as they are. Limits of a source that is weaker than the one that asks for \`profile: strict\` are left out where
the profile has lower ones.

## Environment variables

An empty variable counts as absent.

| variable | field | meaning |
|---|---|---|
${rows.join('\n')}
| \`${guardImageVariable}\` | \`guard.image\` | the image of guarded commands that are sent to a sandbox ([guard.md](guard.md)) |
| \`SALLYPORT_APPROVE_PROJECT\` | | \`1\`: the project file is approved |
| \`SALLYPORT_STATE_DIR\` | | where state is kept; else \`$XDG_STATE_HOME/sallyport\` (\`~/.local/state/sallyport\`) |

## Files

Both are YAML 1.2: one document, no key twice, no tags, at most 100 aliases, 256 KiB and 20,000 lines. [spec.md](spec.md) has the fields. Your
own file has all of them but \`name\`, \`workspace\`, \`workdir\` and \`command\`; besides it has \`guard\` ([guard.md](guard.md)) and \`secrets.store\` ([secrets.md](secrets.md)). Unknown keys are refused. An error names file, line, column and reason
(\`config_invalid\`). Relative paths are relative to the folder of the file; \`~/\` is your home.

\`sallyport.yaml\` is looked for in the working folder, and then in its parents up to the root of the repository (the first with \`.git\`). Outside of
a repository only the working folder counts. A home is not searched from below. A \`sallyport.yml\` is an error, not ignored.

## Approval of a project file

A \`sallyport.yaml\` may have come with a clone, or an agent may have changed it. So what widens a sandbox takes effect only after you approved it:

- always: ${listed('always')} (\`profile: strict\` and an empty list need none)
- above the default: ${listed('when raised')}
- never: ${listed('never')}

A terminal shows what the file asks for and asks once. \`--approve\` or \`SALLYPORT_APPROVE_PROJECT=1\` approve without asking. Without a terminal the
file is refused (\`project_not_approved\`). The approval is for these values in this folder, with real paths: a change of them, or of where a path leads, asks again, a change of other
fields does not. It is kept in \`approvals.json\` in the state folder.

A project file never goes beyond your own file: higher limits, longer \`idle_ttl\` or \`max_lifetime\`, \`standard\` where you say \`strict\`, or another
\`runtime\` are refused (\`refused_by_policy\`). A flag or a variable may, because that is you.
`;
}
