/** Finds the files that ship beside the code (porter, image recipes), from a checkout and from an installed package. */

import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface PackageInfo {
  readonly root: string;
  readonly version: string;
}

export function packageInfo(): PackageInfo {
  for (
    let folder = dirname(fileURLToPath(import.meta.url));
    folder !== dirname(folder);
    folder = dirname(folder)
  ) {
    const manifest = join(folder, 'package.json');
    if (!existsSync(manifest)) continue;
    const { name, version } = JSON.parse(readFileSync(manifest, 'utf8')) as {
      name?: string;
      version?: string;
    };
    if (name === 'sallyport' && version !== undefined) return { root: folder, version };
  }
  throw new Error("sallyport's own package.json was not found above its code");
}
