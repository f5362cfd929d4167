/** How the running program was installed, derived from where its files are. */

import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

export type Installation =
  /** By `install.sh` of a release archive: `lib/sallyport` and two links in `bin`, below the prefix. */
  | { readonly kind: 'archive'; readonly prefix: string }
  | { readonly kind: 'npm-global'; readonly prefix: string }
  /** As a dependency of the project in this folder. */
  | { readonly kind: 'npm-local'; readonly folder: string }
  | { readonly kind: 'checkout'; readonly folder: string };

/** `root`: the folder of the package. */
export function installationOf(root: string): Installation {
  const above = dirname(root);
  if (basename(root) === 'package' && existsSync(join(above, 'archive')))
    return { kind: 'archive', prefix: dirname(dirname(above)) };
  if (existsSync(join(root, 'src')) || basename(above) !== 'node_modules')
    return { kind: 'checkout', folder: root };
  const holder = dirname(above);
  return basename(holder) === 'lib'
    ? { kind: 'npm-global', prefix: dirname(holder) }
    : { kind: 'npm-local', folder: holder };
}

/** Options that make npm act on the place where the program is installed. */
export function npmPlace(installation: Extract<Installation, { kind: `npm-${string}` }>): readonly string[] {
  if (installation.kind === 'npm-local') return ['--prefix', installation.folder];
  // npm's own default is the prefix of the Node that runs it.
  const isDefault = installation.prefix === dirname(dirname(process.execPath));
  return isDefault ? ['-g'] : ['-g', '--prefix', installation.prefix];
}
