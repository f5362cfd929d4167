/** `docs/spec.md` and the JSON Schema for editors. */

import { specFields } from '../../src/config/spec-fields.ts';
import { schemaPath, specJsonSchema } from '../../src/config/spec-json-schema.ts';
import { builtinTools } from '../../src/policy/builtin-tools.ts';
import { isCopiedWhole, isExecutedFrom, ownNames } from '../../src/policy/tool-names.ts';
import { builtinToolNames } from '../../src/protocol/builtin-tool-names.ts';

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
| \`user: uid:gid\` | that one; uid 64256 is refused, because it is porter's relay inside |
| a live workspace, a writable mount or a tool with one | the host's uid:gid, so that files stay yours |
| the same, and you are root | the owner of the folder; refused if that is root too |
| the same, on rootless Podman | you, by keep-id |
| the same, on another rootless engine | refused: the folder would belong to root inside. Use \`mode: copy\` or \`readonly\` |
| the same, on macOS | a uid of its own; the engine's file sharing lets every user write |
| anything else, also \`readonly\` and \`copy\` | a uid of its own, 64000 to 64255. Files of a read-only folder that only their owner may read stay unreadable |

The kernel counts some things for all processes of a uid. A sandbox that runs as somebody else's gets epoll and inotify
instances from a process inside with a uid of the pool, and leaves half of the queued signals and message queues
([limitations](limitations.md#porter)).

The home is \`/home/sally\`.

## What may not be given to a sandbox

The rule looks at real paths, links followed, and in both directions: a folder that contains a forbidden place is refused as well. It holds
for workspaces in every mode, for mounts and for copies. Where a built-in tool serves what is refused, the refusal names it.

- \`/\`, \`/etc\`, \`/proc\`, \`/sys\`, \`/boot\`, \`/dev\`, \`/var\`, \`/run\`, \`/root\`, \`/home\`; on macOS also \`/Users\`, \`/System\`, \`/Library\` and
  their places below \`/private\`. A project folder below a home is allowed: below \`/root\`, \`/home/<name>\`, \`/Users/<name>\` and the home of
  the user who runs Sallyport.
- A home itself, and in it what holds keys, logins and private data: \`.ssh\`, \`.aws\`, \`.gnupg\`, \`.kube\`, \`.docker\`, \`.config/gcloud\`, \`.netrc\`,
  \`.npmrc\`, profiles of browsers, keyrings, and others (\`src/policy/host-places.ts\` is the list).
- Sockets of container engines, by any path, and what is known to contain one. Sockets, devices and pipes in general.
- The state of Sallyport itself.
- \`/tmp\` as a whole; folders below it are fine.
- Writable only: what the host runs (\`.bashrc\`, \`.gitconfig\`, \`~/bin\`, \`/usr\` …). To read them is allowed.

The source of a mount or of a copy must be a file or a folder, with no link on the way but those of root: a sandbox could lead the next one elsewhere. In flags and files the command line follows the links above it. Targets, also those of tools, must be absolute and may not lie in each other, nor hide or be inside
\`/.sallyport\`, \`/proc\`, \`/sys\`, \`/dev\`, \`/etc/passwd\`, \`/etc/group\`, \`/etc/hosts\`, \`/etc/hostname\`, \`/etc/resolv.conf\`; \`/tmp\` and the parent of
the home may not be hidden.

## Copies

A copy is made once, before the sandbox is ready, and belongs to the sandbox's user. It survives a stop. Nothing of it goes back to the host. It
is streamed, so its size costs no memory and no second copy on the host's disk.

- Permissions and times are kept, set-user-id bits are not. Names of one file (hard links) stay one file within a copy.
- A link that stays inside keeps its text; an absolute one that leads inside becomes relative. One that leads out is refused, with its name and
  target, also if nothing is there; so is one that leads to what you may not read. Links are never followed. A link inside that leads nowhere or in
  a circle is copied as it is ([decision 0029](decisions/0029-links-that-lead-nowhere.md)).
- Sockets, pipes and devices are refused.
- A file that changes while it is copied ends the create with \`copy_changed\`.
- Files whose holes are larger than 16 GiB together end the create with \`copy_too_large\`, which names the file. The same holds for a copied workspace and for \`sally cp\`.
- A single file replaces what the image has at its target, and gets the time of the copy. Missing folders above a target belong to root, and to the user in the home.
- The strict profile has no room for copies.

What is refused is found before anything is made, and looked for again while it is copied. A workspace with \`mode: copy\` is
copied in the same way, but its links stay as they are, hard links become files of their own, and sockets, pipes and devices are left out, with an
event \`workspace_skipped\`.

## What is left out of a copy

\`exclude_patterns\` is in the syntax of [gitignore](https://git-scm.com/docs/gitignore): without a slash a pattern is about a name in any
folder, with one it is about the path from the root of the copy; a slash at the end means folders only; \`*\`, \`?\` and \`[a-z]\` match within a name,
\`**\` any number of folders; \`!\` brings back; \`\\\` takes the meaning of the next character away; the last pattern that fits decides. \`?\` is one byte.

\`exclude_from\` names files at the root of what is copied. Each of them must be there. They are copied as any other file.

- One whose name ends with \`.dockerignore\` is read as Docker reads it: every pattern is about the whole path, a folder that is left out takes
  everything below with it, and a later \`!\` brings single things of it back.
- Every other one is read as a \`.gitignore\`. Files of the same name in folders below count too, for what is in their folder.

For each path \`exclude_patterns\` are asked first. If none of them fits, it is left out when one of the files says so. A folder that is left out is
not read at all, unless a \`!\` of a \`.dockerignore\` may bring something in it back.

Of a workspace the same rules say what \`sally diff\` and \`sally apply\` leave out ([results.md](results.md)).

## Built-in tools

| tool | folder of your home | inside | by default | with \`mode: shared\` |
|---|---|---|---|---|
${toolRows().join('\n')}

What your machine executes or obeys in these folders, such as hooks and settings, is read-only inside, or the sandbox has its own.
[builtin-tools.md](builtin-tools.md) says how, and [protected-names.md](protected-names.md#folders-of-built-in-tools) lists each name.

\`git\` also wants your SSH agent. A folder that is not there is an error for claude and codex; the others go without it, with an event \`tool_skipped\`.
With claude, codex and git your real credentials become visible inside, and the events say so (\`tool_credentials\`).

A folder is mounted as it is, if all links in it stay inside. If one leads out, or is absolute, the sandbox gets a copy of the folder without the links
that lead out. The copy is kept in the state folder, is made anew when the container is, and goes with the sandbox; changes in it do not reach your home. The
events say so (\`tool_shadow_copy\`, \`tool_links_left_out\`).

### git over SSH

The keys stay with your agent. What \`git\` inside needs besides is a rule for the host, and the key of the host:

\`\`\`yaml
builtin_tools: [git]
egress:
  allow: ["github.com:22/tcp"]
copies:
  - { source: /home/me/hosts/known_hosts, target: /home/sally/.ssh/known_hosts }
\`\`\`

- \`~/.ssh\` itself is refused as a source. Write the hosts that a sandbox may meet to a file elsewhere: \`ssh-keygen -F github.com\` prints their lines.
- \`clone\`, \`fetch\` and \`push\` find the host by its name, without any setting of a proxy.
- A host that no rule allows does not exist (\`Could not resolve hostname\`). A rule without \`/tcp\` is for HTTP and TLS: the connection is closed, and
  \`sally net ls\` says \`tcp_not_allowed\`. A host that \`known_hosts\` does not have, or has with another key, is refused by ssh.
`;
}

function toolRows(): readonly string[] {
  return builtinToolNames.flatMap((tool) =>
    builtinTools[tool].mounts.map(({ id, source, target, writable }) => {
      const inside = target.startsWith('/') ? target : `~/${target}`;
      const shared = writable ? 'writable' : 'read-only';
      const how = writable ? protectedWords(id) : shared;
      return `| \`${tool}\` | \`~/${source}\` | \`${inside}\` | ${how} | ${shared} |`;
    }),
  );
}

function protectedWords(mount: string): string {
  if (!isExecutedFrom(mount)) return 'writable';
  if (isCopiedWhole(mount)) return 'a copy';
  const copies = ownNames(mount).filter(({ inside }) => inside === 'copy');
  if (copies.length === 0) return 'writable, but for what the host executes';
  return `writable, with copies of ${copies.map(({ name }) => `\`${name}\``).join(', ')}`;
}
