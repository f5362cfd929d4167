/**
 * How ssh inside finds the gate where names lead nowhere: a ProxyCommand for names and addresses that are not of the sandbox
 * itself. OpenSSH reads no variable for it, so its own file includes ours; a file of the user's is left alone.
 */

import { porterPath } from '../protocol/box.ts';
import { isSallyportError } from '../protocol/errors.ts';

export interface HomeFiles {
  mkdir(path: string, options: { readonly mode?: number; readonly parents?: boolean }): Promise<void>;
  write(
    path: string,
    content: Uint8Array,
    options?: { readonly mode?: number; readonly how?: 'new' },
  ): Promise<unknown>;
}

/** Names of services have no dot and are on the sandbox's own network. SECURITY: quoted, as a shell reads the line. */
const settings = `# Of Sallyport, made at each start.
Host *.* *:* !127.* !::1
  ProxyCommand ${porterPath} through '%h' %p
`;

/** `folder` is ours, in the home that the password database names. */
export async function putSshConfig(files: HomeFiles, home: string, folder: string): Promise<void> {
  const own = `${folder}/ssh_config`;
  await files.write(own, Buffer.from(settings));
  try {
    await files.mkdir(`${home}/.ssh`, { parents: true, mode: 0o700 });
    await files.write(`${home}/.ssh/config`, Buffer.from(`Include ${own}\n`), { how: 'new', mode: 0o600 });
  } catch (error) {
    // One is there already, or the folder is the user's own and closed: then ssh goes by names, as other programs do.
    if (!isSallyportError(error) || !error.code.startsWith('file_')) throw error;
  }
}
