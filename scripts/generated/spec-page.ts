/** `docs/spec.md` and the JSON Schema for editors. */

import { specFields } from '../../src/config/spec-fields.ts';
import { schemaPath, specJsonSchema } from '../../src/config/spec-json-schema.ts';

export function specSchemaFile(): Record<string, string> {
  return { [schemaPath]: `${JSON.stringify(specJsonSchema(), null, 2)}\n` };
}

const cell = (text: string): string => text.replaceAll('|', '\\|');

export function specPage(): string {
  const rows = specFields.map(
    ({ field, meaning, absent, empty, example, approval }) =>
      `| \`${field}\` | ${cell(meaning)} | ${cell(absent)} | ${cell(empty ?? '')} | \`${cell(example)}\` | ${approval} |`,
  );
  return `# The spec of a sandbox

One schema for \`sallyport.yaml\`, the body of the API and the options of the SDK (there in camelCase). Unknown keys are refused, with
"did you mean". Absent, empty and set are three things: absent leaves it to a weaker source or to the default, an empty list or map
means none. [config.md](config.md) says which sources there are. Editors find the JSON Schema in
[schema/sallyport.schema.json](schema/sallyport.schema.json).

| field | meaning | absent | empty | example | approval |
|---|---|---|---|---|---|
${rows.join('\n')}

Sizes are written 512m, 4g or 1.5 GiB (units of 1024; a bare number counts bytes), durations 500ms, 30s, 15m, 1h30m or 2d.

**approval**: whether the field of a project file takes effect only after somebody approved it. "when raised": above the default.

## Who a sandbox runs as

Never as root: neither its uid nor its gid is 0.

| case | user |
|---|---|
| \`profile: strict\` | 65534:65534, home \`/tmp\`; \`user\` is refused |
| \`user: uid:gid\` | that one |
| a live workspace or a writable mount | the host's uid:gid, so that files stay yours |
| the same, and you are root | the owner of the folder; refused if that is root too |
| the same, on rootless Podman | you, by keep-id |
| the same, on another rootless engine | refused: the folder would belong to root inside. Use \`mode: copy\` or \`readonly\` |
| the same, on macOS | a uid of its own; the engine's file sharing lets every user write |
| anything else, also \`readonly\` and \`copy\` | a uid of its own, 64000 to 64255. Files of a read-only folder that only their owner may read stay unreadable |

The home is \`/home/sally\`.

## What may not be given to a sandbox

The rule looks at real paths, links followed, and in both directions: a folder that contains a forbidden place is refused as well. It holds
for workspaces in every mode and for mounts.

- \`/\`, \`/etc\`, \`/proc\`, \`/sys\`, \`/boot\`, \`/dev\`, \`/var\`, \`/run\`, \`/root\`, \`/home\`; on macOS also \`/Users\`, \`/System\`, \`/Library\` and
  their places below \`/private\`. A project folder below a home is allowed: below \`/root\`, \`/home/<name>\`, \`/Users/<name>\` and the home of
  the user who runs Sallyport.
- A home itself, and in it what holds keys, logins and private data: \`.ssh\`, \`.aws\`, \`.gnupg\`, \`.kube\`, \`.docker\`, \`.config/gcloud\`, \`.netrc\`,
  \`.npmrc\`, profiles of browsers, keyrings, and others (\`src/policy/host-places.ts\` is the list).
- Sockets of container engines, by any path, and what is known to contain one. Sockets, devices and pipes in general.
- The state of Sallyport itself.
- \`/tmp\` as a whole; folders below it are fine.
- Writable only: what the host runs (\`.bashrc\`, \`.gitconfig\`, \`~/bin\`, \`/usr\` …). To read them is allowed.

A mount's source must be a file or a folder and not a link. Targets must be absolute and may not lie in each other, nor hide or be inside
\`/.sallyport\`, \`/proc\`, \`/sys\`, \`/dev\`, \`/etc/passwd\`, \`/etc/group\`, \`/etc/hosts\`, \`/etc/hostname\`, \`/etc/resolv.conf\`; \`/tmp\` and the parent of
the home may not be hidden.
`;
}
